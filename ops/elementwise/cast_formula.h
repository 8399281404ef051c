// The conversion of one element, shared by cast and copy_ kernels.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/device/host_device.h"
#include "core/dtype.h"

namespace flow::ops {

// To bool, each number that is not zero becomes true. Floating to integer goes through int64, which
// saturates (NaN gives 0); narrower results wrap around as integers do.
template <class To, class From>
FLOW_HOST_DEVICE To convert(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (kIsHalf<From>) {
    return convert<To>(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From{0};
  } else if constexpr (kIsHalf<To>) {
    return To(static_cast<float>(x));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    constexpr From kLimit = From{9223372036854775808.0};  // 2^63
    if (!(x < kLimit)) return static_cast<To>(x == x ? INT64_MAX : 0);
    return static_cast<To>(x < -kLimit ? INT64_MIN : static_cast<int64_t>(x));
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace flow::ops
