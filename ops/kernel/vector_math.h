// Elementary functions of Vec<float> and Vec<double>; ops/kernel/vector.h says how to include it.
//
//   exp expm1 log log1p tanh sigmoid erf sin cos softplus
//   silu gelu_tanh gelu_erf            x sigmoid(x); x times the normal distribution function of x
//   gelu_tanh_slope gelu_erf_slope     their derivatives
//
// float: within 3 units of the last place of the exact result for every input, subnormals included,
// for exp, expm1, log, log1p, tanh, sigmoid, softplus, erf, sin, cos; gelu_erf within 6. The error
// of silu, gelu_tanh and the slopes is bounded relative to that of their factors: absolute 3e-7 at
// most where they are below 1. Where PyTorch's formula gives NaN (silu and gelu of -inf), so do
// these. double: the C library lane by lane: exact enough to check against, not fast.
//
// Polynomials are minimax fits (Remez exchange) with coefficients rounded to float, lowest first;
// reductions follow Cody and Waite (1980).
#pragma once

#include <cstdint>
#include <limits>

#include "ops/kernel/vector.h"
#include "ops/kernel/vector_math_f64.h"
#include "ops/kernel/vector_trig.h"

#include "ops/kernel/isa_begin.h"

// v 2^n for integers n with |n| <= 252; a subnormal result is rounded once.
[[gnu::always_inline]] inline Vec<float> scale_by_power(Vec<float> v, Vec<float> n) {
#if FLOW_ISA == 2
  return {_mm512_scalef_ps(v.reg, n.reg)};
#else
  const Vec<int32_t> bias = Vec<int32_t>::fill(127);
  const Vec<int32_t> whole = to_int(n);
  const Vec<int32_t> half = shift_right<1>(whole);
  const Vec<float> first = as_float(shift_left<23>(half + bias));
  const Vec<float> second = as_float(shift_left<23>(whole - half + bias));
  return v * first * second;
#endif
}

// 2^n for integers n in [-126, 127].
[[gnu::always_inline]] inline Vec<float> power_of_two(Vec<float> n) {
  return as_float(shift_left<23>(to_int(n) + Vec<int32_t>::fill(127)));
}

// x = n ln 2 + r with |r| <= ln(2) / 2; ln 2 is 355/512 and a rest, so n 355/512 is exact.
struct ExpParts {
  Vec<float> n;
  Vec<float> r;
};

[[gnu::always_inline]] inline ExpParts reduce_exp(Vec<float> x) {
  const Vec<float> n = round_even(x * Vec<float>::fill(1.44269504F));
  const Vec<float> high = fnma(n, Vec<float>::fill(0.693359375F), x);
  return {n, fnma(n, Vec<float>::fill(-2.12194440e-4F), high)};
}

// exp(r) - 1 for |r| <= 0.3469; relative error of the fit of exp(r): 2^-28.2.
[[gnu::always_inline]] inline Vec<float> expm1_reduced(Vec<float> r) {
  const Vec<float> q = polynomial(r, 0x1.fffffcp-2F, 0x1.55548cp-3F, 0x1.55585ap-5F, 0x1.123d5cp-7F,
                                  0x1.6ab6bcp-10F);
  return fma(r * r, q, r);
}

// e^x for x <= 89 or NaN; 0 below -104.
[[gnu::always_inline]] inline Vec<float> exp_up_to_89(Vec<float> x) {
  const ExpParts parts = reduce_exp(max(Vec<float>::fill(-104.0F), x));
  return scale_by_power(Vec<float>::fill(1.0F) + expm1_reduced(parts.r), parts.n);
}

[[gnu::always_inline]] inline Vec<float> exp(Vec<float> x) {
  return exp_up_to_89(min(Vec<float>::fill(89.0F), x));
}

// 2^n e^r - 1 = 2 (2^(n-1) (e^r - 1) + (2^(n-1) - 1/2)), halved to reach n = 128.
[[gnu::always_inline]] inline Vec<float> expm1(Vec<float> x) {
  const Vec<float> half = Vec<float>::fill(0.5F);
  const ExpParts parts = reduce_exp(max(Vec<float>::fill(-20.0F), min(Vec<float>::fill(89.0F), x)));
  const Vec<float> scale = power_of_two(parts.n - Vec<float>::fill(1.0F));
  const Vec<float> halved = fma(scale, expm1_reduced(parts.r), scale - half);
  return copysign(halved + halved, x);
}

// tanh |x| = e / (e + 2) with e = exp(2 |x|) - 1, which is 1 in float from 9.02 on.
[[gnu::always_inline]] inline Vec<float> tanh(Vec<float> x) {
  const Vec<float> one = Vec<float>::fill(1.0F);
  const Vec<float> magnitude = abs(x);
  const ExpParts parts = reduce_exp(min(Vec<float>::fill(20.0F), magnitude + magnitude));
  const Vec<float> scale = power_of_two(parts.n);
  const Vec<float> e = fma(scale, expm1_reduced(parts.r), scale - one);
  return copysign(e / (e + one + one), x);
}

// 1 / (1 + e^-x), from e^-|x| so that neither tail overflows or cancels.
[[gnu::always_inline]] inline Vec<float> sigmoid(Vec<float> x) {
  const Vec<float> one = Vec<float>::fill(1.0F);
  const Vec<float> e = exp_up_to_89(-abs(x));
  return select(x < Vec<float>::zero(), e, one) / (one + e);
}

// x = 2^e m with m in [sqrt(1/2), sqrt(2)), for finite x > 0, subnormal ones too.
struct LogParts {
  Vec<float> e;
  Vec<float> m;
};

[[gnu::always_inline]] inline LogParts reduce_log(Vec<float> x) {
#if FLOW_ISA == 2
  const __m512 m = _mm512_getmant_ps(x.reg, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src);
  const __m512 e = _mm512_getexp_ps(x.reg);
  const __mmask16 above = _mm512_cmp_ps_mask(m, _mm512_set1_ps(1.41421356F), _CMP_GE_OQ);
  return {{_mm512_mask_add_ps(e, above, e, _mm512_set1_ps(1.0F))},
          {_mm512_mask_mul_ps(m, above, m, _mm512_set1_ps(0.5F))}};
#else
  using Ints = Vec<int32_t>;
  const Mask<float> tiny = x < Vec<float>::fill(std::numeric_limits<float>::min());
  const Ints pattern = as_int(select(tiny, x * Vec<float>::fill(0x1p23F), x));
  const Ints exponent = shift_right<23>(pattern - Ints::fill(0x3F3504F3));
  return {to_float(exponent) - select(tiny, Vec<float>::fill(23.0F), Vec<float>::zero()),
          as_float(pattern - shift_left<23>(exponent))};
#endif
}

// e log(2) + log(1 + f) with 1 + f = m; log(1 + f) = f - f^2 / 2 + f^3 P(f), fit 2^-27.2.
[[gnu::always_inline]] inline Vec<float> log(Vec<float> x) {
  const auto [e, m] = reduce_log(x);
  const Vec<float> f = m - Vec<float>::fill(1.0F);
  const Vec<float> p =
      polynomial(f, 0x1.555554p-2F, -0x1.000228p-2F, 0x1.99a010p-3F, -0x1.5471bap-3F,
                 0x1.22d8fap-3F, -0x1.0d89c8p-3F, 0x1.05660ap-3F, -0x1.38b738p-4F);
  const Vec<float> square = f * f;
  Vec<float> tail = fma(e, Vec<float>::fill(-2.12194440e-4F), square * f * p);
  tail = fnma(Vec<float>::fill(0.5F), square, tail);
  const Vec<float> result = fma(e, Vec<float>::fill(0.693359375F), f + tail);

#if FLOW_ISA == 2
  // From the lowest four bits, for a NaN, a signalling one, 0, 1, -inf, inf, numbers below 0 and
  // above: x, x, -inf, the result, NaN, inf, NaN, the result.
  return {_mm512_fixupimm_ps(result.reg, x.reg, _mm512_set1_epi32(0x03530422), 0)};
#else
  const Vec<float> zero = Vec<float>::zero();
  const Vec<float> infinity = Vec<float>::fill(std::numeric_limits<float>::infinity());
  const Vec<float> nan = Vec<float>::fill(std::numeric_limits<float>::quiet_NaN());
  const Vec<float> edge = select(x == zero, -infinity, select(x < zero, nan, x));
  return select((x > zero) & (x < infinity), result, edge);
#endif
}

// log(u) + c / u with u = 1 + x rounded and c = x - (u - 1) what the rounding lost (Kahan 1987).
[[gnu::always_inline]] inline Vec<float> log1p(Vec<float> x) {
  const Vec<float> one = Vec<float>::fill(1.0F);
  const Vec<float> u = one + x;
  const Vec<float> lost = x - (u - one);
  const Vec<float> log_u = log(u);
  const Vec<float> result = select(is_finite(log_u), log_u + lost / u, log_u);
  return select(x == Vec<float>::zero(), x, result);
}

// max(x, 0) + log(1 + e) with e = exp(-|x|) <= 1: 2 atanh(s) with s = e / (2 + e) <= 1/3, as
// 2 s + s^3 P(s^2), fit 2^-27.7.
[[gnu::always_inline]] inline Vec<float> softplus(Vec<float> x) {
  const Vec<float> e = exp_up_to_89(-abs(x));
  const Vec<float> s = e / (Vec<float>::fill(2.0F) + e);
  const Vec<float> square = s * s;
  const Vec<float> p =
      polynomial(square, 0x1.5555p-1F, 0x1.99d2a2p-2F, 0x1.1eb334p-2F, 0x1.1f084p-2F);
  return max(Vec<float>::zero(), x) + fma(square * s, p, s + s);
}

// |x| <= 1: x + x P(x^2), fit 2^-29.6; above: 1 - exp(-Q(|x|)), Q a fit of -log erfc, 2^-35.
[[gnu::always_inline]] inline Vec<float> erf(Vec<float> x) {
  const Vec<float> one = Vec<float>::fill(1.0F);
  const Vec<float> a = min(Vec<float>::fill(4.0F), abs(x));
  const Vec<float> p =
      polynomial(a * a, 0x1.06eba8p-3F, -0x1.812740p-2F, 0x1.ce2d50p-4F, -0x1.b7fe90p-6F,
                 0x1.542e0ep-8F, -0x1.a50ae8p-11F, 0x1.4c339cp-14F);
  const Vec<float> q =
      polynomial(a, -0x1.8b3efap-13F, 0x1.212c2cp+0F, 0x1.4434f8p-1F, 0x1.bc1868p-4F,
                 -0x1.9d0a5ep-6F, 0x1.139616p-8F, -0x1.cedf0ep-12F, 0x1.6bf288p-16F);
  const Vec<float> large = one - exp_up_to_89(-q);
  return copysign(select(a < one, fma(a, p, a), large), x);
}

// The part of x x that rounding to `square` lost.
[[gnu::always_inline]] inline Vec<float> square_tail(Vec<float> x, Vec<float> square) {
#if FLOW_ISA == 0
  const Vec<float> high = as_float(as_int(x) & Vec<int32_t>::fill(-4096));
  const Vec<float> low = x - high;
  return ((high * high - square) + (high + high) * low) + low * low;
#else
  return fma(x, x, -square);
#endif
}

// exp(-x^2 / 2) with the error of x^2 taken back, for |x| <= 15.
[[gnu::always_inline]] inline Vec<float> exp_half_square(Vec<float> x) {
  const Vec<float> half = Vec<float>::fill(0.5F);
  const Vec<float> square = x * x;
  const ExpParts parts = reduce_exp(-half * square);
  const Vec<float> r = fnma(half, square_tail(x, square), parts.r);
  return scale_by_power(Vec<float>::fill(1.0F) + expm1_reduced(r), parts.n);
}

// The normal distribution function at -|x| over exp(-x^2 / 2): erfc(t) / 2 = exp(-t^2) R(u) / (t +
// 3) with t = |x| / sqrt 2, u = (t - 3) / (t + 3), R a fit of (t + 3) exp(t^2) erfc(t) / 2 to
// 2^-26.3 for |x| <= 14.8, where the tail is 0 in float (variable after Shepherd and Laframboise
// 1981).
[[gnu::always_inline]] inline Vec<float> tail_over_density(Vec<float> x) {
  const Vec<float> three = Vec<float>::fill(3.0F);
  const Vec<float> t = abs(x) * Vec<float>::fill(0.707106781F);
  const Vec<float> inverse = Vec<float>::fill(1.0F) / (t + three);
  const Vec<float> u = (t - three) * inverse;
  return inverse * polynomial(u, 0x1.12f21ep-1F, -0x1.c44c48p-2F, 0x1.2e3266p-2F, -0x1.3deac6p-3F,
                              0x1.e997a6p-5F, -0x1.b7c14cp-7F, -0x1.41fd34p-11F, 0x1.93d66ap-10F,
                              -0x1.f6f6c4p-13F, -0x1.53374ap-13F);
}

// x times the tail below 0, x less that above. The density comes last as it may be subnormal.
[[gnu::always_inline]] inline Vec<float> gelu_erf(Vec<float> x) {
  const Vec<float> not_above = min(Vec<float>::fill(14.8F), x);
  const Vec<float> z = max(Vec<float>::fill(-14.8F), not_above);
  const Vec<float> part = not_above * tail_over_density(z) * exp_half_square(z);
  return select(x <= Vec<float>::zero(), part, x - part);
}

// The distribution function plus x times the density.
[[gnu::always_inline]] inline Vec<float> gelu_erf_slope(Vec<float> x) {
  const Vec<float> z = max(Vec<float>::fill(-14.8F), min(Vec<float>::fill(14.8F), x));
  const Vec<float> density = exp_half_square(z);
  const Vec<float> tail = tail_over_density(z) * density;
  const Vec<float> below = select(x < Vec<float>::zero(), tail, Vec<float>::fill(1.0F) - tail);
  return fma(z * Vec<float>::fill(0.398942280F), density, below);
}

[[gnu::always_inline]] inline Vec<float> silu(Vec<float> x) {
  return x * sigmoid(x);
}

// (1 + tanh v) / 2 = sigmoid(2 v), v = sqrt(2 / pi) (x + 0.044715 x^3) (Hendrycks and Gimpel 2016).
[[gnu::always_inline]] inline Vec<float> gelu_tanh(Vec<float> x) {
  const Vec<float> cubic =
      fma(x * x, Vec<float>::fill(0.0713548163F), Vec<float>::fill(1.59576912F));
  return x * sigmoid(x * cubic);
}

// s + x s (1 - s) 2 v'(x) with s = sigmoid(2 v), s (1 - s) = e / (1 + e)^2 and e = exp(-|2 v|).
// From |x| = 20 on, s is 0 or 1.
[[gnu::always_inline]] inline Vec<float> gelu_tanh_slope(Vec<float> x) {
  const Vec<float> one = Vec<float>::fill(1.0F);
  const Vec<float> linear = Vec<float>::fill(1.59576912F);
  const Vec<float> z = max(Vec<float>::fill(-20.0F), min(Vec<float>::fill(20.0F), x));
  const Vec<float> square = z * z;
  const Vec<float> argument = z * fma(square, Vec<float>::fill(0.0713548163F), linear);
  const Vec<float> slope = z * fma(square, Vec<float>::fill(0.214064449F), linear);
  const Vec<float> e = exp_up_to_89(-abs(argument));
  const Vec<float> inverse = one / (one + e);
  const Vec<float> s = select(z < Vec<float>::zero(), e * inverse, inverse);
  return fma(slope, e * inverse * inverse, s);
}

#include "ops/kernel/isa_end.h"
