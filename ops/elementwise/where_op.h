// Definitions of the ops of ops/elementwise/where.h.
#pragma once

#include <tuple>

#include "core/op.h"
#include "ops/promotion.h"

namespace flow::ops {

// A bound that is not set does not bind.
struct ClampAttrs {
  std::optional<Scalar> min;
  std::optional<Scalar> max;

  static constexpr auto fields() {
    return std::tuple(key_field("min", &ClampAttrs::min), key_field("max", &ClampAttrs::max));
  }
};

// (condition, a, b)
extern const OpDef kWhere;
// (x, mask; value)
extern const OpDef kMaskedFill;
// (x; min, max)
extern const OpDef kClamp;
// (dy, x; min, max): dy where x is between the bounds, else 0.
extern const OpDef kClampGrad;

}  // namespace flow::ops
