// pow of Vec<float> and Vec<double>; ops/kernel/vector.h says how to include it. float: within one
// unit of the last place of the exact result, and the C library's results for zeros, infinities,
// NaN and negative bases. double: the C library lane by lane.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "ops/kernel/vector.h"
#include "ops/kernel/vector_math.h"

#include "ops/kernel/isa_begin.h"

// y log2(2^e m) for m in [sqrt(1/2), sqrt(2)): log2(m) is the series of 2 / ln(2) atanh(s) with s =
// (m - 1) / (m + 1), to 2^-39.
[[gnu::always_inline]] inline Vec<double> log2_times(Vec<double> m, Vec<double> e, Vec<double> y) {
  const auto number = [](double x) { return Vec<double>::fill(x); };
  const Vec<double> s = (m - number(1)) / (m + number(1));
  const Vec<double> p = polynomial(s * s, 2.8853900817779268, 0.96179669392597561,
                                   0.57707801635558537, 0.41219858311113241, 0.32059889797532520,
                                   0.26230818925253880, 0.22195308321368667);
  const Vec<double> bounded = max(number(-1e30), min(number(1e30), y));
  return max(number(-200), min(number(200), bounded * fma(s, p, e)));
}

// 2^r for |r| <= 1/2, the Taylor series to 2^-27.6.
[[gnu::always_inline]] inline Vec<double> exp2_reduced(Vec<double> r) {
  return polynomial(r, 1.0, 0.69314718055994531, 0.24022650695910071, 0.055504108664821580,
                    0.0096181291076284772, 0.0013333558146428443, 1.5403530393381609e-4,
                    1.5252733804059840e-5);
}

// x^y for x >= 0 and y not 0.
[[gnu::always_inline]] inline Vec<float> pow_of_magnitude(Vec<float> x, Vec<float> y) {
  const Vec<float> infinity = Vec<float>::fill(std::numeric_limits<float>::infinity());
  const Vec<float> zero = Vec<float>::zero();
  const auto [e, m] = reduce_log(x);
  const Vec<double> low = log2_times(widen_low(m), widen_low(e), widen_low(y));
  const Vec<double> high = log2_times(widen_high(m), widen_high(e), widen_high(y));
  const Vec<double> n_low = round_even(low);
  const Vec<double> n_high = round_even(high);
  const Vec<float> result = scale_by_power(
      narrow(exp2_reduced(low - n_low), exp2_reduced(high - n_high)), narrow(n_low, n_high));
  const Mask<float> is_endless = ((x == zero) & (y < zero)) | ((x == infinity) & (y > zero));
  const Mask<float> is_edge = (x == zero) | (x == infinity);
  return select(is_endless, infinity, select(is_edge, zero, result));
}

// A negative x takes its sign with odd y, loses it with even y and gives NaN with fractions.
[[gnu::always_inline]] inline Vec<float> pow(Vec<float> x, Vec<float> y) {
  const Vec<float> zero = Vec<float>::zero();
  const Vec<float> one = Vec<float>::fill(1);
  const Vec<float> nan = Vec<float>::fill(std::numeric_limits<float>::quiet_NaN());
  const Vec<float> half = Vec<float>::fill(0.5F) * y;
  const Mask<float> is_whole = floor(y) == y;
  const Mask<float> is_odd = is_whole & (floor(half) != half) & is_finite(y);
  const Vec<float> magnitude = pow_of_magnitude(abs(x), y);
  Vec<float> result = select(is_odd, copysign(magnitude, x), magnitude);
  result = select((x < zero) & is_finite(x) & ~is_whole, nan, result);
  result = select(is_nan(x) | is_nan(y), nan, result);
  return select((y == zero) | (x == one), one, result);
}

inline Vec<double> pow(Vec<double> x, Vec<double> y) {
  double a[Vec<double>::kLanes];
  double b[Vec<double>::kLanes];
  x.store(a);
  y.store(b);
  for (int64_t i = 0; i < Vec<double>::kLanes; ++i)
    a[i] = ::pow(a[i], b[i]);
  return Vec<double>::load(a);
}

#include "ops/kernel/isa_end.h"
