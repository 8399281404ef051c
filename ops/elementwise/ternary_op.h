// The attrs of addcmul and addcdiv.
#pragma once

#include <cstdint>
#include <tuple>
#include <type_traits>

#include "core/op.h"

namespace flow::ops {

struct AddcAttrs {
  double value = 1;

  template <class C>
  C number() const {
    // -1 stands for 255 in uint8; a direct conversion would not be defined.
    if constexpr (std::is_integral_v<C>) return static_cast<C>(static_cast<int64_t>(value));
    return static_cast<C>(value);
  }

  static constexpr auto fields() { return std::tuple(value_field("value", &AddcAttrs::value)); }
};

}  // namespace flow::ops
