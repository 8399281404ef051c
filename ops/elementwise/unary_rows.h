// The rows of unary functions in the table of ops/elementwise/row_table.h.
//
//   struct Exp {
//     static constexpr UnaryFacts kFacts{.name = "exp", .call = exp, .in_place = exp_};
//     apply(x)                  the formula, in the type that a kernel computes in: float for the
//                               16-bit types
//     dx_of_y(dy, y)            the gradient, written with public functions of tensors; its name
//     or dx_of_x(dy, x)         says what it reads: the output, the input
//     or dx(dy)                 or neither
//     or kGradOfY, kGradOfX     the op of (dy, y) or of (dy, x) that computes it in one pass
//   };
//
// The list at the end holds all rows. A vector form is optional: an overload in the table of
// unary_cpu.cpp or activation_cpu.cpp.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <type_traits>

#include "core/device/host_device.h"
#include "ops/elementwise/activation.h"
#include "ops/elementwise/activation_op.h"
#include "ops/elementwise/row_layouts.h"
#include "ops/elementwise/special.h"
#include "ops/elementwise/trigonometry.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/unary_facts.h"
#include "ops/elementwise/unary_op.h"

namespace flow::ops {

// clang-format off

// ---- arithmetic and rounding

struct Neg {
  static constexpr UnaryFacts kFacts{.name = "neg", .call = neg, .in_place = neg_,
                                     .takes = Takes::kNumbers,
                                     .sbp = arithmetic_sbp<kLinear | kDecreasing>};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(-static_cast<uint64_t>(x));
    } else {
      return -x;
    }
  }
  static auto dx(const auto& dy) { return neg(dy); }
};

struct Abs {
  static constexpr UnaryFacts kFacts{.name = "abs", .call = abs, .in_place = abs_,
                                     .takes = Takes::kNumbers, .sample = kKinkAtZero};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::abs(x);
    } else {
      return x < T{0} ? Neg::apply(x) : x;
    }
  }
  static auto dx_of_x(const auto& dy, const auto& x) { return mul(dy, sign(x)); }
};

struct Sign {
  static constexpr UnaryFacts kFacts{.name = "sign", .call = sign, .in_place = sign_,
                                     .takes = Takes::kAll, .sbp = kRises, .sample = kKinkAtZero,
                                     .is_step = true};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) {
    return static_cast<T>((x > T{0}) - (x < T{0}));
  }
};

struct Square {
  static constexpr UnaryFacts kFacts{.name = "square", .call = square, .in_place = square_,
                                     .takes = Takes::kAll};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<uint64_t>(x) * static_cast<uint64_t>(x));
    } else {
      return x * x;
    }
  }
  static auto dx_of_x(const auto& dy, const auto& x) { return mul(dy, mul(x, 2)); }
};

struct Floor {
  static constexpr UnaryFacts kFacts{.name = "floor", .call = floor, .in_place = floor_,
                                     .takes = Takes::kNumbers, .sbp = kRises,
                                     .sample = kBetweenWholes, .is_step = true};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) {
    if constexpr (std::is_integral_v<T>) return x;
    return static_cast<T>(std::floor(x));
  }
};

struct Ceil {
  static constexpr UnaryFacts kFacts{.name = "ceil", .call = ceil, .in_place = ceil_,
                                     .takes = Takes::kNumbers, .sbp = kRises,
                                     .sample = kBetweenWholes, .is_step = true};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) {
    if constexpr (std::is_integral_v<T>) return x;
    return static_cast<T>(std::ceil(x));
  }
};

// In the default rounding mode, halves go to the even neighbour.
struct Round {
  static constexpr UnaryFacts kFacts{.name = "round", .call = round, .in_place = round_,
                                     .takes = Takes::kNumbers, .sbp = kRises,
                                     .sample = kBetweenHalves, .is_step = true};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) {
    if constexpr (std::is_integral_v<T>) return x;
    return static_cast<T>(std::nearbyint(x));
  }
};

struct Trunc {
  static constexpr UnaryFacts kFacts{.name = "trunc", .call = trunc, .in_place = trunc_,
                                     .takes = Takes::kNumbers, .sbp = kRises,
                                     .sample = kBetweenWholes, .is_step = true};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) {
    if constexpr (std::is_integral_v<T>) return x;
    return static_cast<T>(std::trunc(x));
  }
};

struct Frac {
  static constexpr UnaryFacts kFacts{.name = "frac", .call = frac, .in_place = frac_,
                                     .takes = Takes::kFloats, .sample = kBetweenWholes};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) { return x - std::trunc(x); }
  static auto dx(const auto& dy) { return dy; }
};

// ---- exponentials, logarithms and roots

struct Exp {
  static constexpr UnaryFacts kFacts{.name = "exp", .call = exp, .in_place = exp_, .sbp = kRises,
                                     .autocast = AutocastRule::kFloat32};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) { return std::exp(x); }
  static auto dx_of_y(const auto& dy, const auto& y) { return mul(dy, y); }
};

struct Exp2 {
  static constexpr UnaryFacts kFacts{.name = "exp2", .call = exp2, .in_place = exp2_,
                                     .sbp = kRises};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) { return std::exp2(x); }
  static auto dx_of_y(const auto& dy, const auto& y) { return mul(mul(dy, y), std::numbers::ln2); }
};

struct Expm1 {
  static constexpr UnaryFacts kFacts{.name = "expm1", .call = expm1, .in_place = expm1_,
                                     .sbp = kRises, .autocast = AutocastRule::kFloat32};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) { return std::expm1(x); }
  static auto dx_of_y(const auto& dy, const auto& y) { return mul(dy, add(y, 1)); }
};

struct Log {
  static constexpr UnaryFacts kFacts{.name = "log", .call = log, .in_place = log_,
                                     .sbp = kRisesFromBound, .sample = kPositive,
                                     .autocast = AutocastRule::kFloat32};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) { return std::log(x); }
  static auto dx_of_x(const auto& dy, const auto& x) { return div(dy, x); }
};

struct Log2 {
  static constexpr UnaryFacts kFacts{.name = "log2", .call = log2, .in_place = log2_,
                                     .sbp = kRisesFromBound, .sample = kPositive,
                                     .autocast = AutocastRule::kFloat32};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) { return std::log2(x); }
  static auto dx_of_x(const auto& dy, const auto& x) { return div(dy, mul(x, std::numbers::ln2)); }
};

struct Log10 {
  static constexpr UnaryFacts kFacts{.name = "log10", .call = log10, .in_place = log10_,
                                     .sbp = kRisesFromBound, .sample = kPositive,
                                     .autocast = AutocastRule::kFloat32};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) { return std::log10(x); }
  static auto dx_of_x(const auto& dy, const auto& x) { return div(dy, mul(x, std::numbers::ln10)); }
};

struct Log1p {
  static constexpr UnaryFacts kFacts{.name = "log1p", .call = log1p, .in_place = log1p_,
                                     .sbp = kRisesFromBound, .sample = {.low = -0.8},
                                     .autocast = AutocastRule::kFloat32};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) { return std::log1p(x); }
  static auto dx_of_x(const auto& dy, const auto& x) { return div(dy, add(x, 1)); }
};

struct Sqrt {
  static constexpr UnaryFacts kFacts{.name = "sqrt", .call = sqrt, .in_place = sqrt_,
                                     .sbp = kRisesFromBound, .sample = kPositive};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) { return std::sqrt(x); }
  static auto dx_of_y(const auto& dy, const auto& y) { return div(dy, mul(y, 2)); }
};

struct Rsqrt {
  static constexpr UnaryFacts kFacts{.name = "rsqrt", .call = rsqrt, .in_place = rsqrt_,
                                     .sbp = kFallsFromBound, .sample = kPositive,
                                     .autocast = AutocastRule::kFloat32};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) { return 1 / std::sqrt(x); }
  static auto dx_of_y(const auto& dy, const auto& y) { return mul(mul(dy, -0.5), pow(y, 3)); }
};

struct Reciprocal {
  static constexpr UnaryFacts kFacts{.name = "reciprocal", .call = reciprocal,
                                     .in_place = reciprocal_, .sample = kNonzero,
                                     .autocast = AutocastRule::kFloat32};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) { return 1 / x; }
  static auto dx_of_y(const auto& dy, const auto& y) { return neg(mul(dy, square(y))); }
};

// ---- trigonometric and hyperbolic functions

struct Sin {
  static constexpr UnaryFacts kFacts{.name = "sin", .call = sin, .in_place = sin_};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) { return std::sin(x); }
  static auto dx_of_x(const auto& dy, const auto& x) { return mul(dy, cos(x)); }
};

struct Cos {
  static constexpr UnaryFacts kFacts{.name = "cos", .call = cos, .in_place = cos_};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) { return std::cos(x); }
  static auto dx_of_x(const auto& dy, const auto& x) { return neg(mul(dy, sin(x))); }
};

struct Tan {
  static constexpr UnaryFacts kFacts{.name = "tan", .call = tan, .in_place = tan_,
                                     .sample = {.low = -2, .high = 2, .avoid = {-1.5708, 1.5708},
                                                .num_avoided = 2, .gap = 0.3},
                                     .autocast = AutocastRule::kFloat32};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) { return std::tan(x); }
  static auto dx_of_x(const auto& dy, const auto& x) { return mul(dy, square(tan(x)) + 1); }
};

struct Asin {
  static constexpr UnaryFacts kFacts{.name = "asin", .call = asin, .sample = kInsideOne,
                                     .autocast = AutocastRule::kFloat32};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) { return std::asin(x); }
  static auto dx_of_x(const auto& dy, const auto& x) { return mul(dy, rsqrt(1 - square(x))); }
};

struct Acos {
  static constexpr UnaryFacts kFacts{.name = "acos", .call = acos, .sample = kInsideOne,
                                     .autocast = AutocastRule::kFloat32};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) { return std::acos(x); }
  static auto dx_of_x(const auto& dy, const auto& x) { return neg(mul(dy, rsqrt(1 - square(x)))); }
};

struct Atan {
  static constexpr UnaryFacts kFacts{.name = "atan", .call = atan, .sbp = kRises};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) { return std::atan(x); }
  static auto dx_of_x(const auto& dy, const auto& x) { return div(dy, square(x) + 1); }
};

struct Sinh {
  static constexpr UnaryFacts kFacts{.name = "sinh", .call = sinh, .sbp = kRises,
                                     .autocast = AutocastRule::kFloat32};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) { return std::sinh(x); }
  static auto dx_of_x(const auto& dy, const auto& x) { return mul(dy, cosh(x)); }
};

struct Cosh {
  static constexpr UnaryFacts kFacts{.name = "cosh", .call = cosh,
                                     .autocast = AutocastRule::kFloat32};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) { return std::cosh(x); }
  static auto dx_of_x(const auto& dy, const auto& x) { return mul(dy, sinh(x)); }
};

struct Tanh {
  static constexpr UnaryFacts kFacts{.name = "tanh", .call = tanh, .in_place = tanh_,
                                     .sbp = kRises};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) { return std::tanh(x); }
  static constexpr const OpDef* kGradOfY = &kTanhGrad;
};

struct Asinh {
  static constexpr UnaryFacts kFacts{.name = "asinh", .call = asinh, .sbp = kRises};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) { return std::asinh(x); }
  static auto dx_of_x(const auto& dy, const auto& x) { return mul(dy, rsqrt(square(x) + 1)); }
};

struct Acosh {
  static constexpr UnaryFacts kFacts{.name = "acosh", .call = acosh, .sbp = kRisesFromBound,
                                     .sample = {.low = 1.2, .high = 4}};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) { return std::acosh(x); }
  static auto dx_of_x(const auto& dy, const auto& x) { return mul(dy, rsqrt(square(x) - 1)); }
};

struct Atanh {
  static constexpr UnaryFacts kFacts{.name = "atanh", .call = atanh, .sample = kInsideOne};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) { return std::atanh(x); }
  static auto dx_of_x(const auto& dy, const auto& x) { return div(dy, 1 - square(x)); }
};

struct Logit {
  static constexpr UnaryFacts kFacts{.name = "logit",
                                     .call = [](const TensorArg& x) { return flow::logit(x); },
                                     .sample = {.low = 0.1, .high = 0.9}};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) { return std::log(x / (1 - x)); }
  // dy / (x (1 - x)), infinite at both ends, of which -0 is one
  static auto dx_of_x(const auto& dy, const auto& x) { return div(dy, abs(mul(x, 1 - x))); }
};

struct Sinc {
  static constexpr UnaryFacts kFacts{.name = "sinc", .call = sinc, .sample = kNonzero};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) {
    if (x == T{0}) return T{1};
    const T angle = std::numbers::pi_v<T> * x;
    return std::sin(angle) / angle;
  }
  // dy (pi x cos(pi x) - sin(pi x)) / (pi x^2), 0 where the divisor is
  static auto dx_of_x(const auto& dy, const auto& x) {
    const auto angle = mul(x, std::numbers::pi);
    const auto divisor = mul(x, angle);
    const auto slope = div(sub(mul(angle, cos(angle)), sin(angle)), divisor);
    return masked_fill(mul(dy, slope), eq(divisor, 0), 0);
  }
};

// ---- sigmoids and activations

struct Erf {
  static constexpr UnaryFacts kFacts{.name = "erf", .call = erf, .in_place = erf_, .sbp = kRises};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) { return std::erf(x); }
  static auto dx_of_x(const auto& dy, const auto& x) {
    return mul(mul(dy, 2 * std::numbers::inv_sqrtpi), exp(neg(square(x))));
  }
};

struct Erfc {
  static constexpr UnaryFacts kFacts{.name = "erfc", .call = erfc, .in_place = erfc_,
                                     .sbp = kFalls};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) { return std::erfc(x); }
  static auto dx_of_x(const auto& dy, const auto& x) { return neg(Erf::dx_of_x(dy, x)); }
};

struct Sigmoid {
  static constexpr UnaryFacts kFacts{.name = "sigmoid", .call = sigmoid, .in_place = sigmoid_,
                                     .sbp = kRises};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) { return 1 / (1 + std::exp(-x)); }
  static constexpr const OpDef* kGradOfY = &kSigmoidGrad;
};

struct Relu {
  static constexpr UnaryFacts kFacts{.name = "relu", .call = relu, .in_place = relu_,
                                     .takes = Takes::kNumbers, .sbp = kRises,
                                     .sample = kKinkAtZero};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) { return x < T{0} ? T{0} : x; }
  static constexpr const OpDef* kGradOfY = &kReluGrad;
};

// The normal distribution function, and its derivative at 0.
template <class T>
FLOW_HOST_DEVICE T normal_cdf(T x) {
  return std::erfc(x * T(-1 / std::numbers::sqrt2)) / 2;
}

inline constexpr double kNormalPeak = std::numbers::inv_sqrtpi / std::numbers::sqrt2;

// sqrt(2 / pi) (x + 0.044715 x^3)
template <class T>
FLOW_HOST_DEVICE T gelu_tanh_argument(T x) {
  constexpr T kScale = T(std::numbers::sqrt2 * std::numbers::inv_sqrtpi);
  return kScale * (x + T(0.044715) * x * x * x);
}

struct Ndtr {
  static constexpr UnaryFacts kFacts{.name = "ndtr", .call = ndtr, .in_place = ndtr_, .sbp = kRises};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) { return normal_cdf(x); }
  static auto dx_of_x(const auto& dy, const auto& x) { return dy * exp(x * x / -2) * kNormalPeak; }
};

struct Gelu {
  static constexpr UnaryFacts kFacts{.name = "gelu", .call = gelu_none, .takes = Takes::kFloats};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) { return x * normal_cdf(x); }
  static constexpr const OpDef* kGradOfX = &kGeluGrad;
};

struct GeluTanh {
  static constexpr UnaryFacts kFacts{.name = "gelu_tanh", .call = gelu_tanh,
                                     .takes = Takes::kFloats};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) {
    return x * Sigmoid::apply(2 * gelu_tanh_argument(x));
  }
  static constexpr const OpDef* kGradOfX = &kGeluTanhGrad;
};

struct Silu {
  static constexpr UnaryFacts kFacts{.name = "silu", .call = silu, .in_place = silu_,
                                     .takes = Takes::kFloats};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) { return x * Sigmoid::apply(x); }
  static constexpr const OpDef* kGradOfX = &kSiluGrad;
};

struct Mish {
  static constexpr UnaryFacts kFacts{.name = "mish", .call = mish, .takes = Takes::kFloats,
                                     .sample = {.low = -4, .high = 4}};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) {
    return x * std::tanh(std::log1p(std::exp(x)));
  }
  static constexpr const OpDef* kGradOfX = &kMishGrad;
};

template <class T>
FLOW_HOST_DEVICE T relu6_of(T x) {
  const T positive = x < T{0} ? T{0} : x;
  return positive > T{6} ? T{6} : positive;
}

struct Hardswish {
  static constexpr UnaryFacts kFacts{.name = "hardswish", .call = hardswish,
                                     .takes = Takes::kFloats, .sample = kKinksOfSix};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) { return x * relu6_of(x + 3) / 6; }
  static constexpr const OpDef* kGradOfX = &kHardswishGrad;
};

struct Hardsigmoid {
  static constexpr UnaryFacts kFacts{.name = "hardsigmoid", .call = hardsigmoid,
                                     .takes = Takes::kFloats, .sbp = kRises, .sample = kKinksOfSix};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) { return relu6_of(x + 3) / 6; }
  static constexpr const OpDef* kGradOfX = &kHardsigmoidGrad;
};

// NaN for an infinity, which a part of a maximum may be.
struct Softsign {
  static constexpr UnaryFacts kFacts{.name = "softsign", .call = softsign,
                                     .takes = Takes::kPromotedNumbers, .sample = kKinkAtZero};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) { return x / (1 + std::abs(x)); }
  static constexpr const OpDef* kGradOfX = &kSoftsignGrad;
};

struct Logsigmoid {
  static constexpr UnaryFacts kFacts{.name = "logsigmoid", .call = logsigmoid,
                                     .takes = Takes::kFloats, .sbp = kRises,
                                     .sample = {.low = -4, .high = 4}};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) {
    return (x > T{0} ? T{0} : x) - std::log1p(std::exp(-std::abs(x)));
  }
  static constexpr const OpDef* kGradOfX = &kLogsigmoidGrad;
};

// ---- predicates

struct Isnan {
  static constexpr UnaryFacts kFacts{.name = "isnan", .call = isnan, .takes = Takes::kAll,
                                     .sbp = sbp_isnan, .sample = kSpecials, .loops = kLoopFloats,
                                     .gives_bools = true};
  template <class T> FLOW_HOST_DEVICE static bool apply(T x) { return x != x; }
};

struct Isinf {
  static constexpr UnaryFacts kFacts{.name = "isinf", .call = isinf, .takes = Takes::kAll,
                                     .sample = kSpecials, .loops = kLoopFloats,
                                     .gives_bools = true};
  template <class T> FLOW_HOST_DEVICE static bool apply(T x) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::isinf(x);
    } else {
      return false;
    }
  }
};

struct Isfinite {
  static constexpr UnaryFacts kFacts{.name = "isfinite", .call = isfinite, .takes = Takes::kAll,
                                     .sample = kSpecials, .loops = kLoopFloats,
                                     .gives_bools = true};
  template <class T> FLOW_HOST_DEVICE static bool apply(T x) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::isfinite(x);
    } else {
      return true;
    }
  }
};

struct LogicalNot {
  static constexpr UnaryFacts kFacts{.name = "logical_not", .call = logical_not,
                                     .takes = Takes::kAll, .sbp = sbp_logical_not,
                                     .sample = kHalfZeros, .loops = kLoopFloats,
                                     .gives_bools = true};
  template <class T> FLOW_HOST_DEVICE static bool apply(T x) { return x == T{0}; }
};

// clang-format on

// ---- the lists, by the file that registers the rows' kernels

using BasicRows =
    Rows<Neg, Abs, Sign, Square, Floor, Ceil, Round, Trunc, Frac, Exp, Exp2, Expm1, Log, Log2,
         Log10, Log1p, Sqrt, Rsqrt, Reciprocal, Sin, Cos, Tanh, Logit, Sinc, Erf, Erfc, Sigmoid,
         Relu, Ndtr, Gelu, GeluTanh, Silu, Isnan, Isinf, Isfinite, LogicalNot>;
using TrigonometryRows = Rows<Tan, Asin, Acos, Atan, Sinh, Cosh, Asinh, Acosh, Atanh>;
using ActivationRows = Rows<Mish, Hardswish, Hardsigmoid, Softsign, Logsigmoid>;
using UnaryRows = decltype(join(BasicRows(), TrigonometryRows(), ActivationRows()));

}  // namespace flow::ops
