// The attrs of clamp, and its gradient.
#pragma once

#include <optional>
#include <tuple>

#include "core/op.h"

namespace flow::ops {

// A bound that is not set does not bind.
struct ClampAttrs {
  std::optional<Scalar> min;
  std::optional<Scalar> max;

  static constexpr auto fields() {
    return std::tuple(key_field("min", &ClampAttrs::min), key_field("max", &ClampAttrs::max));
  }
};

// dy where x is between the bounds, else 0.
Tensor clamp_grad(const Tensor& dy, const Tensor& x, const ClampAttrs& attrs);

}  // namespace flow::ops
