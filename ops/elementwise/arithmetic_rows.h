// The rows of arithmetic functions of two tensors, or of a tensor and a number, in the table of
// ops/elementwise/row_table.h.
//
//   struct Mul {
//     static constexpr BinaryFacts kFacts{.name = "mul", .call = mul, …};
//     apply(a, b)       the formula, in the type that a kernel computes in: float for the 16-bit
//                       types
//     da(in), db(in)    the gradients of the inputs, from in.dy() and what kFacts.reads names:
//                       in.a(), in.b(), in.y(). They are written with public functions of tensors
//                       and have the output's shape; the library sums them to the input's. A
//                       missing gradient and an undefined tensor are 0.
//     shared(in)        what several gradients need; they read it as in.shared()
//     using Attrs       the attrs of an op that has a number. apply gets the number as its last
//                       argument, and gradients read in.attrs().
//   };
//   struct MulNumber : WithNumber<Mul> {…};    x c, by the formula of Mul
//   struct NumberDiv : OfNumber<Div> {…};      c / x
//
// The list at the end holds all rows. A vector form is optional: an overload in the table of
// binary_cpu.cpp.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "core/device/host_device.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/binary_facts.h"
#include "ops/elementwise/binary_op.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/in_place.h"
#include "ops/elementwise/row_layouts.h"
#include "ops/elementwise/special.h"
#include "ops/elementwise/trigonometry.h"
#include "ops/promotion.h"

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

// clang-format off

// ---- sums and products

struct Mul {
  static constexpr BinaryFacts kFacts{.name = "mul", .call = mul, .with_number = mul,
                                      .of_number = flow::operator*, .sbp = sbp_mul,
                                      .reads = kReadsA | kReadsB, .loops = kLoopIntegers};
  template <class T> FLOW_HOST_DEVICE static T apply(T a, T b) {
    return wrapping(a, b, [](auto x, auto y) { return x * y; });
  }
  static auto da(const auto& in) { return mul(in.dy(), in.b()); }
  static auto db(const auto& in) { return mul(in.dy(), in.a()); }
};

// a + alpha b
struct Add {
  static constexpr BinaryFacts kFacts{.name = "add", .call = add, .with_number = add,
                                      .of_number = flow::operator+, .sbp = sbp_add,
                                      .loops = kLoopIntegers};
  using Attrs = AddAttrs;
  template <class T> FLOW_HOST_DEVICE static T apply(T a, T b) {
    return wrapping(a, b, [](auto x, auto y) { return x + y; });
  }
  template <class T> FLOW_HOST_DEVICE static T apply(T a, T b, T alpha) {
    return apply(a, Mul::apply(alpha, b));
  }
  static auto da(const auto& in) { return in.dy(); }
  static auto db(const auto& in) {
    return in.attrs().alpha == 1 ? in.dy() : mul(in.dy(), in.attrs().alpha);
  }
};

struct Sub {
  static constexpr BinaryFacts kFacts{.name = "sub", .call = sub, .with_number = sub,
                                      .of_number = flow::operator-, .takes = Takes::kNumbers,
                                      .sbp = sbp_sub, .loops = kLoopIntegers};
  template <class T> FLOW_HOST_DEVICE static T apply(T a, T b) {
    return wrapping(a, b, [](auto x, auto y) { return x - y; });
  }
  static auto da(const auto& in) { return in.dy(); }
  static auto db(const auto& in) { return neg(in.dy()); }
};

struct AddNumber : WithNumber<Add> {
  static constexpr BinaryFacts kFacts{.name = "add_scalar", .with_number = add,
                                      .sbp = arithmetic_sbp<kIncreasing>, .loops = kLoopIntegers};
  static auto da(const auto& in) { return in.dy(); }
};

struct SubNumber : WithNumber<Sub> {
  static constexpr BinaryFacts kFacts{.name = "sub_scalar", .with_number = sub,
                                      .takes = Takes::kNumbers, .sbp = arithmetic_sbp<kIncreasing>,
                                      .loops = kLoopIntegers};
  static auto da(const auto& in) { return in.dy(); }
};

struct NumberSub : OfNumber<Sub> {
  static constexpr BinaryFacts kFacts{.name = "rsub_scalar", .of_number = flow::operator-,
                                      .takes = Takes::kBoolsPromoted,
                                      .sbp = arithmetic_sbp<kDecreasing>, .loops = kNoLoops};
  static auto da(const auto& in) { return neg(in.dy()); }
};

struct MulNumber : WithNumber<Mul> {
  static constexpr BinaryFacts kFacts{.name = "mul_scalar", .with_number = mul, .sbp = sbp_scale,
                                      .loops = kLoopIntegers};
  static auto da(const auto& in) { return mul(in.dy(), in.attrs().value); }
};

// ---- quotients and remainders

// Kernels on devices cannot throw, so they do not compute quotients by zero.
FLOW_HOST_DEVICE inline void refuse_zero() {
#if !defined(__CUDA_ARCH__)
  throw_division_by_zero();
#endif
}

// Integers round towards zero; a zero divisor throws.
struct Div {
  static constexpr BinaryFacts kFacts{.name = "div", .call = div, .with_number = div,
                                      .of_number = flow::operator/, .takes = Takes::kPromoted,
                                      .sbp = sbp_linear_in_a, .reads = kReadsB | kReadsY,
                                      .loops = kNoLoops, .b = kNonzero};
  template <class T> FLOW_HOST_DEVICE static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      if (b == T{0}) refuse_zero();
      if constexpr (std::is_signed_v<T>) {
        if (b == T{-1}) return Sub::apply(T{0}, a);  // the least integer would trap
      }
    }
    return static_cast<T>(a / b);
  }
  static auto shared(const auto& in) { return div(in.dy(), in.b()); }
  static auto da(const auto& in) { return in.shared(); }
  static auto db(const auto& in) { return neg(mul(in.shared(), in.y())); }
};

struct DivNumber : WithNumber<Div> {
  static constexpr BinaryFacts kFacts{.name = "div_scalar", .with_number = div,
                                      .takes = Takes::kPromoted, .sbp = sbp_scale,
                                      .loops = kNoLoops};
  static auto da(const auto& in) { return div(in.dy(), in.attrs().value); }
};

struct NumberDiv : OfNumber<Div> {
  static constexpr BinaryFacts kFacts{.name = "rdiv_scalar", .of_number = flow::operator/,
                                      .takes = Takes::kPromoted, .reads = kReadsA | kReadsY,
                                      .loops = kNoLoops, .a = kNonzero};
  static auto da(const auto& in) { return neg(div(mul(in.dy(), in.y()), in.a())); }
};

// Step functions: their derivatives are 0 wherever they exist.
struct TruncDivide {
  static constexpr BinaryFacts kFacts{.name = "trunc_divide", .call = trunc_divide,
                                      .takes = Takes::kNumbers, .loops = kNoLoops, .b = kNonzero,
                                      .refuses_zero = true};
  template <class T> FLOW_HOST_DEVICE static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return std::trunc(a / b);
    return Div::apply(a, b);
  }
};

struct TruncDivideNumber : WithNumber<TruncDivide> {
  static constexpr BinaryFacts kFacts{.name = "trunc_divide_scalar", .with_number = trunc_divide,
                                      .takes = Takes::kBoolsPromoted,
                                      .sbp = sbp_trunc_divide_number, .loops = kNoLoops, .a = kWide,
                                      .refuses_zero = true};
};

// fmod has the dividend's sign.
struct Fmod {
  static constexpr BinaryFacts kFacts{.name = "fmod", .call = fmod, .with_number = fmod,
                                      .in_place = fmod_, .in_place_with_number = fmod_,
                                      .takes = Takes::kNumbers, .reads = kReadsA | kReadsB,
                                      .loops = kNoLoops, .b = kNonzero, .refuses_zero = true};
  template <class T> FLOW_HOST_DEVICE static T apply(T a, T b) {
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
  static auto da(const auto& in) { return in.dy(); }
  static auto db(const auto& in) { return neg(mul(in.dy(), trunc_divide(in.a(), in.b()))); }
};

struct FmodNumber : WithNumber<Fmod> {
  static constexpr BinaryFacts kFacts{.name = "fmod_scalar", .with_number = fmod,
                                      .takes = Takes::kBoolsPromoted, .loops = kNoLoops, .a = kWide,
                                      .refuses_zero = true};
  static auto da(const auto& in) { return in.dy(); }
};

// remainder has the divisor's sign: a - b floor(a / b).
struct Remainder {
  static constexpr BinaryFacts kFacts{.name = "remainder", .call = remainder,
                                      .with_number = remainder, .in_place = remainder_,
                                      .in_place_with_number = remainder_, .takes = Takes::kNumbers,
                                      .reads = kReadsA | kReadsB, .loops = kNoLoops, .b = kNonzero,
                                      .refuses_zero = true};
  template <class T> FLOW_HOST_DEVICE static T apply(T a, T b) {
    const T rest = Fmod::apply(a, b);
    return rest != T{0} && (rest < T{0}) != (b < T{0}) ? Add::apply(rest, b) : rest;
  }
  static auto da(const auto& in) { return in.dy(); }
  static auto db(const auto& in) { return neg(mul(in.dy(), floor_divide(in.a(), in.b()))); }
};

struct RemainderNumber : WithNumber<Remainder> {
  static constexpr BinaryFacts kFacts{.name = "remainder_scalar", .with_number = remainder,
                                      .takes = Takes::kBoolsPromoted, .loops = kNoLoops, .a = kWide,
                                      .refuses_zero = true};
  static auto da(const auto& in) { return in.dy(); }
};

// floor(a / b), from the exact remainder as a / b may round up to the next integer. A step
// function.
struct FloorDivide {
  static constexpr BinaryFacts kFacts{.name = "floor_divide", .call = floor_divide,
                                      .with_number = floor_divide, .in_place = floor_divide_,
                                      .in_place_with_number = floor_divide_,
                                      .takes = Takes::kNumbers, .loops = kNoLoops, .b = kNonzero,
                                      .refuses_zero = true};
  template <class T> FLOW_HOST_DEVICE static T apply(T a, T b) {
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

struct FloorDivideNumber : WithNumber<FloorDivide> {
  static constexpr BinaryFacts kFacts{.name = "floor_divide_scalar", .with_number = floor_divide,
                                      .takes = Takes::kBoolsPromoted, .loops = kNoLoops, .a = kWide,
                                      .refuses_zero = true};
};

// ---- powers and logarithms

// Integers: by squaring, with wrap-around. A negative exponent gives 0 except for the bases 1 and
// -1. da is 0 where b is 0; db is 0 where a is 0 and b >= 0.
struct Pow {
  static constexpr BinaryFacts kFacts{.name = "pow", .call = pow, .with_number = pow,
                                      .of_number = pow, .in_place = pow_,
                                      .in_place_with_number = pow_, .takes = Takes::kNumbers,
                                      .reads = kReadsA | kReadsB | kReadsY, .loops = kNoLoops,
                                      .a = kPositive, .autocast = AutocastRule::kFloat32};
  template <class T> FLOW_HOST_DEVICE static T apply(T a, T b) {
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
  static auto da(const auto& in) {
    const auto slope = mul(in.dy(), mul(in.b(), pow(in.a(), sub(in.b(), 1))));
    return masked_fill(slope, eq(in.b(), 0), 0);
  }
  static auto db(const auto& in) {
    const auto is_flat = logical_and(eq(in.a(), 0), ge(in.b(), 0));
    return masked_fill(mul(in.dy(), mul(in.y(), log(in.a()))), is_flat, 0);
  }
};

// The square root is that of sqrt, which is NaN for -inf.
struct PowNumber {
  static constexpr BinaryFacts kFacts{.name = "pow_scalar", .with_number = pow,
                                      .takes = Takes::kBoolsPromoted, .sbp = sbp_pow_number,
                                      .reads = kReadsA, .loops = kNoLoops, .number = 2,
                                      .autocast = AutocastRule::kFloat32};
  using Attrs = ScalarAttrs;
  template <class T> FLOW_HOST_DEVICE static T apply(T x, T c) {
    if constexpr (std::is_floating_point_v<T>) {
      if (c == T(0.5)) return std::sqrt(x);
    }
    return Pow::apply(x, c);
  }
  static auto da(const auto& in) {
    const auto c = in.attrs().value.template to<double>();
    if (c == 0) return Tensor();
    return mul(in.dy(), mul(pow(in.a(), c - 1), c));
  }
};

// c^x. The gradient is 0 where c is 0 and x >= 0.
struct NumberPow : OfNumber<Pow> {
  static constexpr BinaryFacts kFacts{.name = "rpow_scalar", .of_number = pow,
                                      .takes = Takes::kBoolsPromoted, .sbp = sbp_number_pow,
                                      .reads = kReadsA | kReadsY, .loops = kNoLoops, .number = 2,
                                      .autocast = AutocastRule::kFloat32};
  static auto da(const auto& in) {
    const auto c = in.attrs().value.template to<double>();
    const auto dx = mul(mul(in.dy(), in.y()), std::log(c));
    return c == 0 ? masked_fill(dx, ge(in.a(), 0), 0) : dx;
  }
};

struct Maximum {
  static constexpr BinaryFacts kFacts{.name = "maximum", .call = maximum, .with_number = maximum,
                                      .sbp = sbp_maximum, .reads = kReadsA | kReadsB,
                                      .loops = kLoopIntegers};
  template <class T> FLOW_HOST_DEVICE static T apply(T a, T b) {
    return a > b || a != a ? a : b;  // NaN if either is
  }
  // dy goes to the larger one; if they are equal, each gets half of it
  static auto shared(const auto& in) {
    return where(eq(in.a(), in.b()), mul(in.dy(), 0.5), in.dy());
  }
  static auto da(const auto& in) { return masked_fill(in.shared(), lt(in.a(), in.b()), 0); }
  static auto db(const auto& in) { return masked_fill(in.shared(), lt(in.b(), in.a()), 0); }
};

struct Minimum {
  static constexpr BinaryFacts kFacts{.name = "minimum", .call = minimum, .with_number = minimum,
                                      .sbp = sbp_minimum, .reads = kReadsA | kReadsB,
                                      .loops = kLoopIntegers};
  template <class T> FLOW_HOST_DEVICE static T apply(T a, T b) { return a < b || a != a ? a : b; }
  static auto shared(const auto& in) { return Maximum::shared(in); }
  static auto da(const auto& in) { return masked_fill(in.shared(), gt(in.a(), in.b()), 0); }
  static auto db(const auto& in) { return masked_fill(in.shared(), gt(in.b(), in.a()), 0); }
};

struct Logaddexp {
  static constexpr BinaryFacts kFacts{.name = "logaddexp", .call = logaddexp,
                                      .takes = Takes::kFloats, .sbp = sbp_rises,
                                      .reads = kReadsA | kReadsB};
  template <class T> FLOW_HOST_DEVICE static T apply(T a, T b) {
    if (a == b && std::isinf(a)) return a;
    return Maximum::apply(a, b) + std::log1p(std::exp(-std::abs(a - b)));
  }
  // da = dy / (1 + exp(b - a)), db = dy / (1 + exp(a - b))
  static auto shared(const auto& in) { return sub(in.a(), in.b()); }
  static auto da(const auto& in) { return mul(in.dy(), sigmoid(in.shared())); }
  static auto db(const auto& in) { return mul(in.dy(), sigmoid(neg(in.shared()))); }
};

// da is 0 where a is 0 and b <= 0.
struct Xlogy {
  static constexpr BinaryFacts kFacts{.name = "xlogy", .call = xlogy, .with_number = xlogy,
                                      .takes = Takes::kPromoted, .sbp = sbp_linear_in_a,
                                      .reads = kReadsA | kReadsB, .b = kPositive};
  template <class T> FLOW_HOST_DEVICE static T apply(T a, T b) {
    if (a == T{0} && b == b) return T{0};
    return a * std::log(b);
  }
  static auto da(const auto& in) {
    const auto is_flat = logical_and(eq(in.a(), 0), le(in.b(), 0));
    return masked_fill(xlogy(in.dy(), in.b()), is_flat, 0);
  }
  // The quotient of a and a small b alone may not fit into 16 bits.
  static auto db(const auto& in) { return div(mul(in.dy(), in.a()), in.b()); }
};

// ---- angles, distances and signs

struct Hypot {
  static constexpr BinaryFacts kFacts{.name = "hypot", .call = hypot, .takes = Takes::kFloats,
                                      .reads = kReadsA | kReadsB | kReadsY, .a = kNonzero,
                                      .b = kNonzero};
  template <class T> FLOW_HOST_DEVICE static T apply(T a, T b) { return std::hypot(a, b); }
  static auto da(const auto& in) { return mul(in.dy(), div(in.a(), in.y())); }
  static auto db(const auto& in) { return mul(in.dy(), div(in.b(), in.y())); }
};

struct Atan2 {
  static constexpr BinaryFacts kFacts{.name = "atan2", .call = atan2, .takes = Takes::kPromoted,
                                      .reads = kReadsA | kReadsB, .a = kNonzero};
  template <class T> FLOW_HOST_DEVICE static T apply(T a, T b) { return std::atan2(a, b); }
  // da = dy b / h^2, db = -dy a / h^2 with h = hypot(a, b), and 0 at the origin. Squares of tiny
  // numbers would underflow, so h divides twice.
  static auto shared(const auto& in) { return hypot(widened(in.a()), widened(in.b())); }
  static auto along(const auto& in, const auto& x) {
    const auto& length = in.shared();
    const auto share = div(mul(in.dy(), div(widened(x), length)), length);
    return cast(masked_fill(share, eq(length, 0), 0), x.dtype());
  }
  static auto da(const auto& in) { return along(in, in.b()); }
  static auto db(const auto& in) { return neg(along(in, in.a())); }
};

// da = dy y / a, 0 where a is 0; db = 0
struct Copysign {
  static constexpr BinaryFacts kFacts{.name = "copysign", .call = copysign, .with_number = copysign,
                                      .takes = Takes::kPromoted, .sbp = sbp_rises_in_b,
                                      .reads = kReadsA | kReadsY, .a = kNonzero, .b = kNonzero};
  template <class T> FLOW_HOST_DEVICE static T apply(T a, T b) { return std::copysign(a, b); }
  static auto da(const auto& in) {
    return mul(in.dy(), masked_fill(div(in.y(), in.a()), eq(in.a(), 0), 0));
  }
};

// clang-format on

using ArithmeticRows =
    Rows<Add, Sub, Mul, Div, Pow, FloorDivide, TruncDivide, Fmod, Remainder, Maximum, Minimum,
         Logaddexp, Xlogy, Hypot, Atan2, Copysign, AddNumber, SubNumber, NumberSub, MulNumber,
         DivNumber, NumberDiv, PowNumber, NumberPow, FloorDivideNumber, TruncDivideNumber,
         FmodNumber, RemainderNumber>;

}  // namespace flow::ops
