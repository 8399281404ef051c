// What reductions compute for each element, on the CPU and on CUDA devices.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "boxing/comm/reduction.h"
#include "core/device/host_device.h"
#include "core/float16.h"

namespace flow::boxing {

template <class T>
inline constexpr bool kIs16BitFloat = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

// The type in which elements of type T are combined.
template <class T>
using Accumulator = std::conditional_t<kIs16BitFloat<T>, float, T>;

template <class T>
inline constexpr bool kHasMean = std::is_floating_point_v<T> || kIs16BitFloat<T>;

template <ReduceOp kOp, class T>
FLOW_HOST_DEVICE T combine(T a, T b) {
  if constexpr (kOp == ReduceOp::kSum || kOp == ReduceOp::kMean) {
    if constexpr (std::is_same_v<T, bool>) {
      return a || b;
    } else if constexpr (std::is_integral_v<T>) {  // unsigned arithmetic wraps around
      return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    } else {
      return a + b;
    }
  } else {
    // The result is NaN if either value is NaN: a NaN compares false and differs from itself.
    const bool takes_a = (kOp == ReduceOp::kMax ? a > b : a < b) || a != a;
    return takes_a ? a : b;
  }
}

// The value that does not change the result of `op`.
template <class T>
T neutral_value(ReduceOp op) {
  if (op == ReduceOp::kSum || op == ReduceOp::kMean) return T(Accumulator<T>{});
  const bool is_max = op == ReduceOp::kMax;
  if constexpr (kIs16BitFloat<T>) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    return T(is_max ? -kInfinity : kInfinity);
  } else if constexpr (std::is_floating_point_v<T>) {
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    return is_max ? -kInfinity : kInfinity;
  } else {
    return is_max ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
  }
}

}  // namespace flow::boxing
