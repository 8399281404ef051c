// The loops that convert elements, for cast and copy_. Include it after the other headers and
// before ops/kernel/isa_begin.h; all names are in flow::ops::isa_*.
//
//   for_each_cast([&]<class To, class From>() { … })   the pairs of dtypes that have loops
//   CastBlock                                           the block of elementwise_loops.h
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/dtype.h"
#include "ops/elementwise/cast_formula.h"
#include "ops/elementwise/elementwise_loops.h"

#include "ops/kernel/isa_begin.h"

// Bools are read as bytes, which the compiler vectorises.
template <class To, class From>
inline void convert_elements(To* y, int64_t n, const From* x) {
  using Read = std::conditional_t<std::is_same_v<From, bool>, uint8_t, From>;
  const auto* source = reinterpret_cast<const Read*>(x);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i)
    y[i] = convert<To>(source[i]);
}

// Floats within int32, as most are, take one instruction for a vector of them.
template <class To>
inline void convert_to_narrow(To* y, int64_t n, const float* x) {
  constexpr int64_t kLanes = Vec<float>::kLanes;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Vec<float> v = load(x + i);
    if (!all(abs(v) < Vec<float>::fill(0x1p31F))) {
      convert_elements(y + i, kLanes, x + i);
      continue;
    }
    int32_t lanes[kLanes];
    to_int(trunc(v)).store(lanes);
    for (int64_t k = 0; k < kLanes; ++k)
      y[i + k] = static_cast<To>(lanes[k]);
  }
  convert_elements(y + i, n - i, x + i);
}

struct CastBlock {
  template <class To, class From>
  static void run(const void* /*attrs*/, To* y, int64_t n, const From* x) {
    constexpr bool kHasHalf = kIsHalf<To> || kIsHalf<From>;
    if constexpr (is_floating(dtype_of<To>) && is_floating(dtype_of<From>) && kHasHalf &&
                  sizeof(To) <= 4 && sizeof(From) <= 4) {
      map(
          y, n, [](auto v) { return v; }, x);
    } else if constexpr (std::is_same_v<From, float> && std::is_integral_v<To> &&
                         !std::is_same_v<To, bool> && sizeof(To) <= 4) {
      convert_to_narrow(y, n, x);
    } else {
      convert_elements(y, n, x);
    }
  }
};

template <class To, class... From, class Fn>
void for_each_source(const Fn& fn) {
  (fn.template operator()<To, From>(), ...);
}

// Other pairs are rare and take the reference kernel.
template <class Fn>
void for_each_cast(const Fn& fn) {
  for_each_source<float, double, bool, uint8_t, int32_t, int64_t, Float16, BFloat16>(fn);
  for_each_source<double, float, bool, int64_t>(fn);
  for_each_source<int64_t, float, int32_t, uint8_t, bool>(fn);
  for_each_source<int32_t, float, int64_t, bool>(fn);
  for_each_source<uint8_t, float>(fn);
  for_each_source<bool, float, int64_t>(fn);
  for_each_source<Float16, float>(fn);
  for_each_source<BFloat16, float>(fn);
}

#include "ops/kernel/isa_end.h"
