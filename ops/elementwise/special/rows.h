// The rows of special functions, and of functions of the parts of a number, in the table of
// ops/elementwise/row_table.h. They are written as those of unary_rows.h and arithmetic_rows.h.
// Most compute in double, for float too, by the formulas of this folder.
//
// Rows that have no public function of their own, or have arguments besides tensors, have
// TernaryFacts whatever the number of their inputs.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <type_traits>

#include "core/device/host_device.h"
#include "ops/elementwise/binary_facts.h"
#include "ops/elementwise/row_layouts.h"
#include "ops/elementwise/special.h"
#include "ops/elementwise/special/airy.h"
#include "ops/elementwise/special/bessel.h"
#include "ops/elementwise/special/draws.h"
#include "ops/elementwise/special/gamma.h"
#include "ops/elementwise/special/parts.h"
#include "ops/elementwise/special_op.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/unary_facts.h"
#include "ops/elementwise/unary_rows.h"

namespace flow::ops {

inline constexpr RowSample kOscillating{.low = -9, .high = 9};
inline constexpr RowSample kPositiveWide{.low = 0.3, .high = 9};

// clang-format off

// ---- modified Bessel functions

struct I0 {
  static constexpr UnaryFacts kFacts{.name = "i0", .call = i0};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) {
    return static_cast<T>(special::bessel_i0(static_cast<double>(x)));
  }
  static auto dx_of_x(const auto& dy, const auto& x) { return mul(dy, i1(x)); }
};

struct I0e {
  static constexpr UnaryFacts kFacts{.name = "i0e", .call = i0e, .sample = kKinkAtZero};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) {
    return static_cast<T>(special::bessel_i0e(static_cast<double>(x)));
  }
  static auto dx_of_x(const auto& dy, const auto& x) {
    return mul(dy, sub(i1e(x), mul(sign(x), i0e(x))));
  }
};

// dx = dy (i0(x) - i1(x) / x), and dy / 2 for 0
struct I1 {
  static constexpr UnaryFacts kFacts{.name = "i1", .call = i1, .sbp = kRises};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) {
    return static_cast<T>(special::bessel_i1(static_cast<double>(x)));
  }
  static auto dx_of_x(const auto& dy, const auto& x) {
    return mul(dy, masked_fill(sub(i0(x), div(i1(x), x)), eq(x, 0), 0.5));
  }
};

struct I1e {
  static constexpr UnaryFacts kFacts{.name = "i1e", .call = i1e, .sample = kOscillating};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) {
    return static_cast<T>(special::bessel_i1e(static_cast<double>(x)));
  }
  static auto dx_of_x(const auto& dy, const auto& x) {
    const auto y = i1e(x);
    const auto slope = sub(i0e(x), add(mul(y, sign(x)), div(y, x)));
    return mul(dy, masked_fill(slope, eq(x, 0), 0.5));
  }
};

struct K0 {
  static constexpr UnaryFacts kFacts{.name = "modified_bessel_k0", .call = modified_bessel_k0,
                                     .sbp = kFallsFromBound, .sample = kPositive};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) {
    return static_cast<T>(special::bessel_k0(static_cast<double>(x)));
  }
  static auto dx_of_x(const auto& dy, const auto& x) {
    return neg(mul(dy, modified_bessel_k1(x)));
  }
};

struct K1 {
  static constexpr UnaryFacts kFacts{.name = "modified_bessel_k1", .call = modified_bessel_k1,
                                     .sbp = kFallsFromBound, .sample = kPositive};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) {
    return static_cast<T>(special::bessel_k1(static_cast<double>(x)));
  }
  static auto dx_of_x(const auto& dy, const auto& x) {
    return neg(mul(dy, add(modified_bessel_k0(x), div(modified_bessel_k1(x), x))));
  }
};

struct K0e {
  static constexpr UnaryFacts kFacts{.name = "scaled_modified_bessel_k0",
                                     .call = scaled_modified_bessel_k0,
                                     .sbp = kFallsFromBound, .sample = kPositive};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) {
    return static_cast<T>(special::bessel_k0e(static_cast<double>(x)));
  }
  static auto dx_of_x(const auto& dy, const auto& x) {
    return mul(dy, sub(scaled_modified_bessel_k0(x), scaled_modified_bessel_k1(x)));
  }
};

struct K1e {
  static constexpr UnaryFacts kFacts{.name = "scaled_modified_bessel_k1",
                                     .call = scaled_modified_bessel_k1,
                                     .sbp = kFallsFromBound, .sample = kPositive};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) {
    return static_cast<T>(special::bessel_k1e(static_cast<double>(x)));
  }
  static auto dx_of_x(const auto& dy, const auto& x) {
    const auto y = scaled_modified_bessel_k1(x);
    return mul(dy, sub(sub(y, div(y, x)), scaled_modified_bessel_k0(x)));
  }
};

// ---- Bessel functions

struct J0 {
  static constexpr UnaryFacts kFacts{.name = "bessel_j0", .call = bessel_j0,
                                     .sample = kOscillating};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) {
    return static_cast<T>(special::bessel_j0(static_cast<double>(x)));
  }
  static auto dx_of_x(const auto& dy, const auto& x) { return neg(mul(dy, bessel_j1(x))); }
};

// dx = dy (j0(x) - j1(x) / x), and dy / 2 for 0
struct J1 {
  static constexpr UnaryFacts kFacts{.name = "bessel_j1", .call = bessel_j1,
                                     .sample = kOscillating};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) {
    return static_cast<T>(special::bessel_j1(static_cast<double>(x)));
  }
  static auto dx_of_x(const auto& dy, const auto& x) {
    const auto slope = sub(bessel_j0(x), div(bessel_j1(x), x));
    return mul(dy, masked_fill(slope, eq(x, 0), 0.5));
  }
};

struct Y0 {
  static constexpr UnaryFacts kFacts{.name = "bessel_y0", .call = bessel_y0,
                                     .sample = kPositiveWide};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) {
    return static_cast<T>(special::bessel_y0(static_cast<double>(x)));
  }
  static auto dx_of_x(const auto& dy, const auto& x) { return neg(mul(dy, bessel_y1(x))); }
};

struct Y1 {
  static constexpr UnaryFacts kFacts{.name = "bessel_y1", .call = bessel_y1,
                                     .sample = kPositiveWide};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) {
    return static_cast<T>(special::bessel_y1(static_cast<double>(x)));
  }
  static auto dx_of_x(const auto& dy, const auto& x) {
    return mul(dy, sub(bessel_y0(x), div(bessel_y1(x), x)));
  }
};

// dx = dy (cos(x) - y) / x; near 0, where that cancels, -dy x / 3
struct SphericalJ0 {
  static constexpr UnaryFacts kFacts{.name = "spherical_bessel_j0", .call = spherical_bessel_j0,
                                     .sample = kOscillating};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) {
    return static_cast<T>(special::spherical_j0(static_cast<double>(x)));
  }
  static auto dx_of_x(const auto& dy, const auto& x) {
    const auto slope = div(sub(cos(x), spherical_bessel_j0(x)), x);
    return mul(dy, where(lt(abs(x), 1e-4), div(x, -3), slope));
  }
};

// PyTorch has no derivative either.
struct AiryAi {
  static constexpr UnaryFacts kFacts{.name = "airy_ai", .call = airy_ai,
                                     .sample = {.low = -6, .high = 3}};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) {
    return static_cast<T>(special::airy_ai(static_cast<double>(x)));
  }
};

// dx = dy (2 x y - 2 / √π)
struct Erfcx {
  static constexpr UnaryFacts kFacts{.name = "erfcx", .call = erfcx, .sbp = kFalls};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) {
    return static_cast<T>(special::erfcx(static_cast<double>(x)));
  }
  static auto dx_of_x(const auto& dy, const auto& x) {
    return mul(dy, sub(mul(mul(x, 2), erfcx(x)), 2 * std::numbers::inv_sqrtpi));
  }
};

// ---- entropy and the normal distribution

// -x log(x), 0 for 0 and -infinity below; dx = -dy (log(x) + 1)
struct Entr {
  static constexpr UnaryFacts kFacts{.name = "entr", .call = entr,
                                     .sample = {.low = 0.05, .high = 3}};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) {
    if (x < T{0}) return static_cast<T>(-special::kInfinity);
    return x == T{0} ? T{0} : -x * std::log(x);
  }
  static auto dx_of_x(const auto& dy, const auto& x) { return neg(mul(dy, add(log(x), 1))); }
};

// dx = dy √(2 / π) / erfcx(-x / √2), the density over the distribution function
struct LogNdtr {
  static constexpr UnaryFacts kFacts{.name = "log_ndtr", .call = log_ndtr, .sbp = kRises};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) {
    return static_cast<T>(special::log_normal_cdf(static_cast<double>(x)));
  }
  static auto dx_of_x(const auto& dy, const auto& x) {
    const auto scaled = erfcx(mul(x, -1 / std::numbers::sqrt2));
    return div(mul(dy, 2 * kNormalPeak), scaled);
  }
};

// dx = dy √(2 π) exp(y^2 / 2)
struct Ndtri {
  static constexpr UnaryFacts kFacts{.name = "ndtri", .call = ndtri,
                                     .sample = {.low = 0.05, .high = 0.95}};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) {
    return static_cast<T>(special::normal_quantile(static_cast<double>(x)));
  }
  static auto dx_of_y(const auto& dy, const auto& y) {
    return mul(mul(dy, 1 / kNormalPeak), exp(div(square(y), 2)));
  }
};

// da is 0 where a is 0 and b <= -1. It is linear in a only where b > -1.
struct Xlog1py {
  static constexpr BinaryFacts kFacts{.name = "xlog1py", .call = xlog1py, .with_number = xlog1py,
                                      .of_number = xlog1py, .takes = Takes::kPromoted,
                                      .reads = kReadsA | kReadsB, .b = {.low = -0.5, .high = 3},
                                      .is_general = false};
  template <class T> FLOW_HOST_DEVICE static T apply(T a, T b) {
    if (a == T{0} && b == b) return T{0};
    return a * std::log1p(b);
  }
  static auto da(const auto& in) {
    const auto is_flat = logical_and(eq(in.a(), 0), le(in.b(), -1));
    return masked_fill(xlog1py(in.dy(), in.b()), is_flat, 0);
  }
  static auto db(const auto& in) { return mul(in.dy(), div(in.a(), add(in.b(), 1))); }
};

// ---- the incomplete gamma function and zeta

// db = dy b^(a - 1) exp(-b) / Γ(a)
auto gamma_slope(const auto& in) {
  const auto exponent = sub(sub(xlogy(sub(in.a(), 1), in.b()), in.b()), lgamma(in.a()));
  return mul(in.dy(), exp(exponent));
}

// They fall with a and rise with x or the other way round, but a partial minimum may have infinite
// parts, and the function of two infinities is NaN.
struct Gammainc {
  static constexpr BinaryFacts kFacts{.name = "gammainc", .call = gammainc, .takes = Takes::kFloats,
                                      .reads = kReadsA | kReadsB, .a = kPositive, .b = kPositive,
                                      .is_general = false, .without_slope = 0b01};
  template <class T> FLOW_HOST_DEVICE static T apply(T a, T b) {
    return static_cast<T>(special::gammainc(static_cast<double>(a), static_cast<double>(b)));
  }
  static auto db(const auto& in) { return gamma_slope(in); }
};

struct Gammaincc {
  static constexpr BinaryFacts kFacts{.name = "gammaincc", .call = gammaincc,
                                      .takes = Takes::kFloats, .reads = kReadsA | kReadsB,
                                      .a = kPositive, .b = kPositive, .is_general = false,
                                      .without_slope = 0b01};
  template <class T> FLOW_HOST_DEVICE static T apply(T a, T b) {
    return static_cast<T>(special::gammaincc(static_cast<double>(a), static_cast<double>(b)));
  }
  static auto db(const auto& in) { return neg(gamma_slope(in)); }
};

// db = -dy a ζ(a + 1, b)
struct Zeta {
  static constexpr BinaryFacts kFacts{.name = "zeta", .call = zeta, .with_number = zeta,
                                      .of_number = zeta, .takes = Takes::kPromoted,
                                      .reads = kReadsA | kReadsB,
                                      .a = {.low = 1.5, .high = 6}, .b = {.low = 0.3, .high = 9},
                                      .is_general = false, .without_slope = 0b01};
  template <class T> FLOW_HOST_DEVICE static T apply(T a, T b) {
    return static_cast<T>(special::zeta(static_cast<double>(a), static_cast<double>(b)));
  }
  static auto db(const auto& in) {
    return neg(mul(in.dy(), mul(in.a(), zeta(add(in.a(), 1), in.b()))));
  }
};

// ---- integers

struct Gcd {
  static constexpr BinaryFacts kFacts{.name = "gcd", .call = gcd, .takes = Takes::kIntegers,
                                      .loops = kNoLoops};
  template <class T> FLOW_HOST_DEVICE static T apply(T a, T b) {
    return static_cast<T>(special::common_divisor(a, b));
  }
};

struct Lcm {
  static constexpr BinaryFacts kFacts{.name = "lcm", .call = lcm, .takes = Takes::kIntegers,
                                      .loops = kNoLoops};
  template <class T> FLOW_HOST_DEVICE static T apply(T a, T b) {
    return special::common_multiple(a, b);
  }
};

// ---- the parts of a number

// The number says how many digits the dtype has, because 16-bit types are computed in float.
struct Nextafter {
  static constexpr TernaryFacts kFacts{.name = "nextafter", .num_inputs = 2,
                                       .takes = Takes::kFloats, .sbp = sbp_rises,
                                       .reads = kReadsA | kReadsB, .loops = kLoopLibrary};
  using Attrs = NextafterAttrs;
  template <class T> FLOW_HOST_DEVICE static T apply(T a, T b, T digits) {
    return special::neighbour(a, b, static_cast<int>(digits));
  }
  static auto da(const auto& in) { return masked_fill(in.dy(), eq(in.a(), in.b()), 0); }
};

struct FrexpMantissa {
  static constexpr TernaryFacts kFacts{.name = "frexp_mantissa", .num_inputs = 1,
                                       .takes = Takes::kFloats, .reads = kReadsA,
                                       .loops = kLoopLibrary};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) { return special::mantissa_of(x); }
  static auto da(const auto& in) { return div(in.dy(), exp2(frexp_exponent(in.a()))); }
};

struct FrexpExponent {
  static constexpr TernaryFacts kFacts{.name = "frexp_exponent", .num_inputs = 1,
                                       .takes = Takes::kFloats, .loops = kLoopLibrary};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) {
    return static_cast<T>(special::exponent_of(x));
  }
};

// ---- numbers of events, from uniform numbers; see ops/random/random.h

// (rate, u)
struct PoissonCount {
  static constexpr TernaryFacts kFacts{.name = "poisson_count", .num_inputs = 2,
                                       .takes = Takes::kFloats, .loops = kLoopLibrary};
  template <class T> FLOW_HOST_DEVICE static T apply(T rate, T u) {
    return static_cast<T>(
        special::poisson_count(static_cast<double>(rate), static_cast<double>(u)));
  }
};

// (count, p, u)
struct BinomialCount {
  static constexpr TernaryFacts kFacts{.name = "binomial_count", .takes = Takes::kFloats,
                                       .loops = kLoopLibrary};
  template <class T> FLOW_HOST_DEVICE static T apply(T count, T p, T u) {
    return static_cast<T>(special::binomial_count(
        static_cast<double>(count), static_cast<double>(p), static_cast<double>(u)));
  }
};

// clang-format on

using SpecialRows = Rows<I0, I0e, I1, I1e, K0, K1, K0e, K1e, J0, J1, Y0, Y1, SphericalJ0, AiryAi,
                         Erfcx, Entr, LogNdtr, Ndtri, Xlog1py, Gammainc, Gammaincc, Zeta, Gcd, Lcm,
                         Nextafter, FrexpMantissa, FrexpExponent, PoissonCount, BinomialCount>;

}  // namespace flow::ops
