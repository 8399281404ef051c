// Gamma, Bessel and Airy functions, the inverse of erf, logits and signs. Integers and bools are
// cast to default_dtype() unless a function says otherwise. The result is NaN outside of the
// domain.
#pragma once

#include <cstdint>
#include <optional>

#include "core/tensor.h"

namespace flow {

// log |Γ(x)|.
Tensor lgamma(const TensorArg& x);
// The derivative of lgamma; NaN at negative integers.
Tensor digamma(const TensorArg& x);
// The n-th derivative of digamma.  polygamma(1, x)
Tensor polygamma(int64_t n, const TensorArg& x);

// The y with erf(y) = x; infinite at -1 and 1.
Tensor erfinv(const TensorArg& x);
// exp(x^2) erfc(x).
Tensor erfcx(const TensorArg& x);

// -x log(x): 0 for 0, -infinity below.
Tensor entr(const TensorArg& x);
// a log(1 + b), 0 where a is 0 unless b is NaN.
Tensor xlog1py(const TensorArg& a, const TensorArg& b);
Tensor xlog1py(const TensorArg& a, const Scalar& b);
Tensor xlog1py(const Scalar& a, const TensorArg& b);
// The logarithm of ndtr, also where ndtr itself is 0, and the inverse of ndtr.
Tensor log_ndtr(const TensorArg& x);
Tensor ndtri(const TensorArg& p);

// pow, computed in float64.
Tensor float_power(const TensorArg& x, const TensorArg& exponent);
Tensor float_power(const TensorArg& x, const Scalar& exponent);
Tensor float_power(const Scalar& x, const TensorArg& exponent);

// The regularised incomplete gamma functions (NIST DLMF 8.2.4) for a >= 0 and x >= 0, which add up
// to 1: gammainc is the integral of t^(a - 1) exp(-t) from 0 to x, over Γ(a), and gammaincc that
// from x to infinity. igamma and igammac are other names. Floating only. There is no gradient for
// a: asking for it throws Unsupported.
Tensor gammainc(const TensorArg& a, const TensorArg& x);
Tensor gammaincc(const TensorArg& a, const TensorArg& x);
Tensor igamma(const TensorArg& a, const TensorArg& x);
Tensor igammac(const TensorArg& a, const TensorArg& x);

// Hurwitz's zeta function (DLMF 25.11.1), the sum of (q + k)^-s over k >= 0, for s > 1; infinite
// for s = 1 and for whole q <= 0. There is no gradient for s: asking for it throws Unsupported.
Tensor zeta(const TensorArg& s, const TensorArg& q);
Tensor zeta(const TensorArg& s, const Scalar& q);
Tensor zeta(const Scalar& s, const TensorArg& q);

// Modified Bessel functions of the first kind I_0 and I_1 (DLMF 10.25), and exp(-|x|) times them.
// modified_bessel_i0 and modified_bessel_i1 are other names of i0 and i1.
Tensor i0(const TensorArg& x);
Tensor i0e(const TensorArg& x);
Tensor i1(const TensorArg& x);
Tensor i1e(const TensorArg& x);
Tensor modified_bessel_i0(const TensorArg& x);
Tensor modified_bessel_i1(const TensorArg& x);

// Modified Bessel functions of the second kind K_0 and K_1 (DLMF 10.25), and exp(x) times them.
Tensor modified_bessel_k0(const TensorArg& x);
Tensor modified_bessel_k1(const TensorArg& x);
Tensor scaled_modified_bessel_k0(const TensorArg& x);
Tensor scaled_modified_bessel_k1(const TensorArg& x);

// Bessel functions of the first and second kinds, J_0, J_1, Y_0 and Y_1 (DLMF 10.2), and the
// spherical j_0(x) = sin(x) / x.
Tensor bessel_j0(const TensorArg& x);
Tensor bessel_j1(const TensorArg& x);
Tensor bessel_y0(const TensorArg& x);
Tensor bessel_y1(const TensorArg& x);
Tensor spherical_bessel_j0(const TensorArg& x);

// Airy's function Ai (DLMF 9.2). There is no gradient.
Tensor airy_ai(const TensorArg& x);

// The greatest common divisor of integers, and the least common multiple; not negative, and
// gcd(0, 0) is 0. lcm wraps around. Other dtypes throw InvalidArgument.
//   gcd(tensor({12, -9}), tensor({8, 6})): 4, 3
Tensor gcd(const TensorArg& a, const TensorArg& b);
Tensor lcm(const TensorArg& a, const TensorArg& b);

// The next number of the dtype from a in the direction of b. Floating only.
Tensor nextafter(const TensorArg& a, const TensorArg& b);

struct FrexpResult {
  Tensor mantissa;  // 0.5 to 1 in magnitude, or a zero, in the dtype of x
  Tensor exponent;  // int32
};

// The parts of x = mantissa 2^exponent. Infinities and NaN are their own mantissas. Floating only.
FrexpResult frexp(const TensorArg& x);

// log(x / (1 - x)), the inverse of sigmoid.
Tensor logit(const TensorArg& x, const LogitOptions& options = {});

// |a| with the sign of b, for which the sign of a zero counts too.
Tensor copysign(const TensorArg& a, const TensorArg& b);
Tensor copysign(const TensorArg& a, const Scalar& b);

// 0 where x < 0, `values` where it is 0, 1 where it is larger.
Tensor heaviside(const TensorArg& x, const TensorArg& values);

// log2(2^a + 2^b), without overflow.
Tensor logaddexp2(const TensorArg& a, const TensorArg& b);

Tensor deg2rad(const TensorArg& x);
Tensor rad2deg(const TensorArg& x);

// x 2^exponent.
Tensor ldexp(const TensorArg& x, const TensorArg& exponent);

// Whether the sign of x is set: also for -0 and a negative NaN.
Tensor signbit(const TensorArg& x);

// The logarithm of the multivariate gamma function of dimension p: p (p - 1) / 4 log π plus the sum
// of lgamma(x - j / 2) over j < p. Needs p > 0 and x > (p - 1) / 2.
Tensor mvlgamma(const TensorArg& x, int64_t p);
Tensor multigammaln(const TensorArg& x, int64_t p);

}  // namespace flow
