// The attrs of addcmul and addcdiv.
#pragma once

#include <tuple>

#include "core/op.h"

namespace flow::ops {

struct AddcAttrs {
  double value = 1;

  template <class C>
  C number() const {
    return static_cast<C>(value);
  }

  static constexpr auto fields() { return std::tuple(value_field("value", &AddcAttrs::value)); }
};

}  // namespace flow::ops
