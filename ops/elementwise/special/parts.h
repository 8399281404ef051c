// Divisors of integers, and the parts and neighbours of floating numbers, for kernels of both
// devices.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "core/device/host_device.h"

namespace flow::ops::special {

template <class T>
FLOW_HOST_DEVICE uint64_t magnitude(T x) {
  const auto bits = static_cast<uint64_t>(int64_t{x});
  if constexpr (std::is_signed_v<T>) {
    if (x < 0) return uint64_t{0} - bits;
  }
  return bits;
}

// Euclid's algorithm; not negative except for the least integer, whose magnitude wraps around.
template <class T>
FLOW_HOST_DEVICE uint64_t common_divisor(T a, T b) {
  uint64_t x = magnitude(a);
  uint64_t y = magnitude(b);
  while (y != 0) {
    const uint64_t rest = x % y;
    x = y;
    y = rest;
  }
  return x;
}

// 0 if either is 0. Wraps around.
template <class T>
FLOW_HOST_DEVICE T common_multiple(T a, T b) {
  const uint64_t divisor = common_divisor(a, b);
  if (divisor == 0) return 0;
  const auto product = static_cast<T>(magnitude(a) / divisor * magnitude(b));
  return static_cast<T>(magnitude(product));
}

// x is its mantissa, of magnitude 0.5 to 1, times 2^exponent. Zeros, infinities and NaN are their
// own mantissa, with the exponent 0.
template <class T>
FLOW_HOST_DEVICE T mantissa_of(T x) {
  int exponent = 0;
  return std::isfinite(x) ? std::frexp(x, &exponent) : x;
}

template <class T>
FLOW_HOST_DEVICE int exponent_of(T x) {
  int exponent = 0;
  if (std::isfinite(x)) std::frexp(x, &exponent);
  return exponent;
}

// nextafter of a number of 11 digits (float16) or 8 digits (bfloat16), computed in float.
FLOW_HOST_DEVICE inline float narrow_neighbour(float a, float b, int digits) {
  if (a != a || b != b) return a + b;
  if (a == b) return b;
  const int least = digits == 11 ? -13 : -125;  // the exponent of the least normal number
  if (std::isinf(a)) {                          // from an infinity to the largest number
    const int largest = digits == 11 ? 16 : 128;
    return std::copysign(std::ldexp(1 - std::ldexp(1.0F, -digits), largest), a);
  }
  const int own = exponent_of(a);
  int exponent = a == 0 || own < least ? least : own;
  const bool shrinks = a != 0 && (a > 0) != (b > a);
  // Below a power of two the numbers are twice as dense.
  if (shrinks && exponent > least && std::abs(mantissa_of(a)) == 0.5F) --exponent;
  const float step = std::ldexp(1.0F, exponent - digits);
  const float next = b > a ? a + step : a - step;
  return next == 0 ? std::copysign(next, a) : next;
}

// The next number of the dtype from a towards b.
template <class T>
FLOW_HOST_DEVICE T neighbour(T a, T b, int digits) {
  if constexpr (std::is_same_v<T, float>) {
    if (digits < 24) return narrow_neighbour(a, b, digits);
  }
  return std::nextafter(a, b);
}

}  // namespace flow::ops::special
