// The attrs of addcmul and addcdiv.
#pragma once

#include <tuple>

#include "core/op.h"
#include "ops/number_range.h"

namespace flow::ops {

struct AddcAttrs {
  double value = 1;

  template <class C>
  C number() const {
    return factor_as<C>(value);
  }

  static constexpr auto fields() { return std::tuple(value_field("value", &AddcAttrs::value)); }
};

}  // namespace flow::ops
