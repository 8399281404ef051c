// The scalar formulas of ops/elementwise/unary.h and of the fused gradients: the reference. They
// take and return the type a kernel computes in (float for the 16-bit types).
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <type_traits>

#include "core/host_device.h"
#include "ops/elementwise/unary_op.h"

namespace flow::ops {

struct Neg {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(-static_cast<uint64_t>(x));
    } else {
      return -x;
    }
  }
};

struct Abs {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::abs(x);
    } else {
      return x < T{0} ? Neg::apply(x) : x;
    }
  }
};

struct Sign {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    return static_cast<T>((x > T{0}) - (x < T{0}));
  }
};

struct Square {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<uint64_t>(x) * static_cast<uint64_t>(x));
    } else {
      return x * x;
    }
  }
};

struct Floor {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    if constexpr (std::is_integral_v<T>) return x;
    return static_cast<T>(std::floor(x));
  }
};

struct Ceil {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    if constexpr (std::is_integral_v<T>) return x;
    return static_cast<T>(std::ceil(x));
  }
};

// In the default rounding mode, halves go to the even neighbour.
struct Round {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    if constexpr (std::is_integral_v<T>) return x;
    return static_cast<T>(std::nearbyint(x));
  }
};

struct Trunc {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    if constexpr (std::is_integral_v<T>) return x;
    return static_cast<T>(std::trunc(x));
  }
};

struct Frac {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    return x - std::trunc(x);
  }
};

struct Relu {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    return x < T{0} ? T{0} : x;
  }
};

struct Exp {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    return std::exp(x);
  }
};

struct Exp2 {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    return std::exp2(x);
  }
};

struct Expm1 {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    return std::expm1(x);
  }
};

struct Log {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    return std::log(x);
  }
};

struct Log2 {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    return std::log2(x);
  }
};

struct Log10 {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    return std::log10(x);
  }
};

struct Log1p {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    return std::log1p(x);
  }
};

struct Sqrt {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    return std::sqrt(x);
  }
};

struct Rsqrt {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    return 1 / std::sqrt(x);
  }
};

struct Reciprocal {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    return 1 / x;
  }
};

struct Sin {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    return std::sin(x);
  }
};

struct Cos {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    return std::cos(x);
  }
};

struct Tanh {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    return std::tanh(x);
  }
};

struct Erf {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    return std::erf(x);
  }
};

struct Erfc {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    return std::erfc(x);
  }
};

struct Sinc {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    if (x == T{0}) return T{1};
    const T angle = std::numbers::pi_v<T> * x;
    return std::sin(angle) / angle;
  }
};

struct Sigmoid {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    return 1 / (1 + std::exp(-x));
  }
};

// The normal distribution function.
template <class T>
FLOW_HOST_DEVICE T normal_cdf(T x) {
  return std::erfc(x * T(-1 / std::numbers::sqrt2)) / 2;
}

struct Gelu {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    return x * normal_cdf(x);
  }
};

// sqrt(2 / pi) (x + 0.044715 x^3)
template <class T>
FLOW_HOST_DEVICE T gelu_tanh_argument(T x) {
  constexpr T kScale = T(std::numbers::sqrt2 * std::numbers::inv_sqrtpi);
  return kScale * (x + T(0.044715) * x * x * x);
}

struct GeluTanh {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    return x * Sigmoid::apply(2 * gelu_tanh_argument(x));
  }
};

struct Silu {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    return x * Sigmoid::apply(x);
  }
};

struct Isnan {
  template <class T>
  FLOW_HOST_DEVICE static bool apply(T x) {
    return x != x;
  }
};

struct Isinf {
  template <class T>
  FLOW_HOST_DEVICE static bool apply(T x) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::isinf(x);
    } else {
      return false;
    }
  }
};

struct Isfinite {
  template <class T>
  FLOW_HOST_DEVICE static bool apply(T x) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::isfinite(x);
    } else {
      return true;
    }
  }
};

struct LogicalNot {
  template <class T>
  FLOW_HOST_DEVICE static bool apply(T x) {
    return x == T{0};
  }
};

// ---- with attrs: formulas of ops/elementwise/elementwise_loops.h themselves

struct LeakyRelu {
  template <class C>
  static auto make(const void* attrs) {
    const C slope = static_cast<C>(static_cast<const LeakyReluAttrs*>(attrs)->negative_slope);
    return [slope](C x) { return x > C{0} ? x : slope * x; };
  }
};

struct Elu {
  template <class C>
  static auto make(const void* attrs) {
    const C alpha = static_cast<C>(static_cast<const EluAttrs*>(attrs)->alpha);
    return [alpha](C x) { return x > C{0} ? x : alpha * std::expm1(x); };
  }
};

struct Softplus {
  template <class C>
  static auto make(const void* attrs) {
    const C beta = static_cast<C>(static_cast<const SoftplusAttrs*>(attrs)->beta);
    const C threshold = static_cast<C>(static_cast<const SoftplusAttrs*>(attrs)->threshold);
    return [beta, threshold](C x) {
      return beta * x > threshold ? x : std::log1p(std::exp(beta * x)) / beta;
    };
  }
};

// ---- fused gradients of (dy, x) or (dy, y)

struct ReluGrad {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T dy, T y) {
    return y > T{0} ? dy : T{0};
  }
};

struct TanhGrad {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T dy, T y) {
    return dy * (1 - y * y);
  }
};

struct SigmoidGrad {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T dy, T y) {
    return dy * (y * (1 - y));
  }
};

struct GeluGrad {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T dy, T x) {
    const T density = std::exp(x * x / -2) * T(std::numbers::inv_sqrtpi / std::numbers::sqrt2);
    return dy * (normal_cdf(x) + x * density);
  }
};

// s + x s (1 - s) v' with s = sigmoid(v), v = 2 sqrt(2 / pi) (x + 0.044715 x^3)
struct GeluTanhGrad {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T dy, T x) {
    constexpr T kScale = T(2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi);
    const T s = Sigmoid::apply(2 * gelu_tanh_argument(x));
    const T slope = kScale * (1 + 3 * T(0.044715) * x * x);
    return dy * (s + x * (s * (1 - s) * slope));
  }
};

struct SiluGrad {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T dy, T x) {
    const T s = Sigmoid::apply(x);
    return dy * (s * (1 + x * (1 - s)));
  }
};

struct LeakyReluGrad {
  template <class C>
  static auto make(const void* attrs) {
    const C slope = static_cast<C>(static_cast<const LeakyReluAttrs*>(attrs)->negative_slope);
    return [slope](C dy, C x) { return x > C{0} ? dy : slope * dy; };
  }
};

struct EluGrad {
  template <class C>
  static auto make(const void* attrs) {
    const C alpha = static_cast<C>(static_cast<const EluAttrs*>(attrs)->alpha);
    return [alpha](C dy, C x) { return x > C{0} ? dy : dy * (alpha * std::exp(x)); };
  }
};

struct SoftplusGrad {
  template <class C>
  static auto make(const void* attrs) {
    const C beta = static_cast<C>(static_cast<const SoftplusAttrs*>(attrs)->beta);
    const C threshold = static_cast<C>(static_cast<const SoftplusAttrs*>(attrs)->threshold);
    return [beta, threshold](C dy, C x) {
      return beta * x > threshold ? dy : dy * Sigmoid::apply(beta * x);
    };
  }
};

}  // namespace flow::ops
