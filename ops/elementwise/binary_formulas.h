// The scalar formulas of ops/elementwise/binary.h. They are the reference, and integer kernels are
// made of them. They take and return the type that a kernel computes in (float for the 16-bit
// types).
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "core/device/host_device.h"
#include "ops/elementwise/elementwise_formulas.h"

namespace flow::ops {

// Integers wrap around. Bools saturate, so that addition is "or" and multiplication is "and".
template <class T, class F>
FLOW_HOST_DEVICE T wrapping(T a, T b, F f) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    using U = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    return static_cast<T>(f(static_cast<U>(a), static_cast<U>(b)));
  } else {
    return static_cast<T>(f(a, b));
  }
}

[[noreturn]] void throw_division_by_zero();

// Kernels on devices cannot throw, so they do not compute quotients by zero.
FLOW_HOST_DEVICE inline void refuse_zero() {
#if !defined(__CUDA_ARCH__)
  throw_division_by_zero();
#endif
}

struct Add {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T a, T b) {
    return wrapping(a, b, [](auto x, auto y) { return x + y; });
  }
};

struct Sub {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T a, T b) {
    return wrapping(a, b, [](auto x, auto y) { return x - y; });
  }
};

struct Mul {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T a, T b) {
    return wrapping(a, b, [](auto x, auto y) { return x * y; });
  }
};

// Integers round towards zero; a zero divisor throws.
struct Div {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      if (b == T{0}) refuse_zero();
      if constexpr (std::is_signed_v<T>) {
        if (b == T{-1}) return Sub::apply(T{0}, a);  // the least integer would trap
      }
    }
    return static_cast<T>(a / b);
  }
};

struct TruncDivide {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return std::trunc(a / b);
    return Div::apply(a, b);
  }
};

// fmod has the dividend's sign.
struct Fmod {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::fmod(a, b);
    } else {
      if (b == T{0}) refuse_zero();
      if constexpr (std::is_signed_v<T>) {
        if (b == T{-1}) return T{0};  // the least integer would trap
      }
      return static_cast<T>(a % b);
    }
  }
};

// remainder has the divisor's sign: a - b floor(a / b).
struct Remainder {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T a, T b) {
    const T rest = Fmod::apply(a, b);
    return rest != T{0} && (rest < T{0}) != (b < T{0}) ? Add::apply(rest, b) : rest;
  }
};

// floor(a / b), from the exact remainder as a / b may round up to the next integer.
struct FloorDivide {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      if (b == T{0}) return a / b;
      const T rest = std::fmod(a, b);
      T quotient = (a - rest) / b;
      if (rest != T{0} && (b < T{0}) != (rest < T{0})) quotient -= T{1};
      if (quotient == T{0}) return std::copysign(T{0}, a / b);
      const T floored = std::floor(quotient);
      return quotient - floored > T(0.5) ? floored + T{1} : floored;
    } else {
      const T quotient = Div::apply(a, b);
      const bool is_inexact = Fmod::apply(a, b) != T{0};
      return is_inexact && (a < T{0}) != (b < T{0}) ? static_cast<T>(quotient - 1) : quotient;
    }
  }
};

// Integers: by squaring, with wrap-around. A negative exponent gives 0 except for the bases 1 and
// -1.
struct Pow {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::pow(a, b);
    } else {
      if constexpr (std::is_signed_v<T>) {
        if (b < T{0}) {
          if (a == T{1}) return a;
          if (a == T{-1}) return b % 2 == 0 ? T{1} : a;
          return T{0};
        }
      }
      T result{1};
      for (T base = a; b > T{0}; b = static_cast<T>(b / 2)) {
        if (b % 2 != 0) result = Mul::apply(result, base);
        base = Mul::apply(base, base);
      }
      return result;
    }
  }
};

// The formula with one exponent for all elements: the square root is that of sqrt, which is NaN for
// -inf.
struct PowOfTensor {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      if (b == T(0.5)) return std::sqrt(a);
    }
    return Pow::apply(a, b);
  }
};

// NaN if either is NaN.
struct Maximum {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T a, T b) {
    return a > b || a != a ? a : b;
  }
};

struct Minimum {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T a, T b) {
    return a < b || a != a ? a : b;
  }
};

struct Logaddexp {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T a, T b) {
    if (a == b && std::isinf(a)) return a;
    return Maximum::apply(a, b) + std::log1p(std::exp(-std::abs(a - b)));
  }
};

struct Xlogy {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T a, T b) {
    if (a == T{0} && b == b) return T{0};
    return a * std::log(b);
  }
};

struct Hypot {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T a, T b) {
    return std::hypot(a, b);
  }
};

}  // namespace flow::ops
