// tan, atan, asin and acos of Vec<float> and Vec<double>; ops/kernel/vector.h says how to include
// it. float: within 3 units of the last place of the exact result. double: the C library lane by
// lane.
#pragma once

#include <cmath>
#include <cstdint>

#include "ops/kernel/vector.h"
#include "ops/kernel/vector_trig.h"

#include "ops/kernel/isa_begin.h"

// pi / 2 as a float and the rest.
inline constexpr float kHalfPi = 0x1.921fb6p+0F;
inline constexpr float kHalfPiRest = -0x1.777a5cp-25F;

// pi / 2 - x for |x| below it.
[[gnu::always_inline]] inline Vec<float> less_than_half_pi(Vec<float> x) {
  return (Vec<float>::fill(kHalfPi) - x) + Vec<float>::fill(kHalfPiRest);
}

// sin(r) / cos(r), and -cos(r) / sin(r) in odd quadrants; both fits are those of sin and cos.
[[gnu::always_inline]] inline Vec<float> tan_of_parts(const TrigParts& parts) {
  const Vec<float> r = parts.r;
  const Vec<float> square = r * r;
  const Vec<float> sine =
      fma(square * r, polynomial(square, -0x1.555546p-3F, 0x1.11077cp-7F, -0x1.9955aep-13F), r);
  const Vec<float> cosine =
      polynomial(square, 1.0F, -0.5F, 0x1.55554ap-5F, -0x1.6c0c1ap-10F, 0x1.99e0eep-16F);
  const Mask<float> even = (parts.quadrant & Vec<int32_t>::fill(1)) == Vec<int32_t>::fill(0);
  return select(even, sine, -cosine) / select(even, cosine, sine);
}

[[gnu::always_inline]] inline Vec<float> tan(Vec<float> x) {
  if (!all(abs(x) < Vec<float>::fill(kTrigLimit)))
    return each_lane(x, [](float lane) { return ::tanf(lane); });
  return select(x == Vec<float>::zero(), x, tan_of_parts(reduce_trig(x)));
}

// |x| <= 1: x + x^3 P(x^2), fit 2^-28.5; above: pi / 2 - atan(1 / |x|).
[[gnu::always_inline]] inline Vec<float> atan(Vec<float> x) {
  const Vec<float> one = Vec<float>::fill(1);
  const Vec<float> magnitude = abs(x);
  const Mask<float> is_large = magnitude > one;
  const Vec<float> z = select(is_large, one / magnitude, magnitude);
  const Vec<float> square = z * z;
  const Vec<float> p = polynomial(square, -0x1.55553ep-2F, 0x1.9991fep-3F, -0x1.2421b4p-3F,
                                  0x1.c099f2p-4F, -0x1.58346cp-4F, 0x1.dac964p-5F, -0x1.fed064p-6F,
                                  0x1.65a54ep-7F, -0x1.d62e0cp-10F);
  const Vec<float> small = fma(square * z, p, z);
  return copysign(select(is_large, less_than_half_pi(small), small), x);
}

// asin(x) for 0 <= x <= 1/2: x + x^3 P(x^2), fit 2^-27.6.
[[gnu::always_inline]] inline Vec<float> asin_reduced(Vec<float> x, Vec<float> square) {
  const Vec<float> p = polynomial(square, 0x1.5555cap-3F, 0x1.33014ep-4F, 0x1.748c62p-5F,
                                  0x1.8ba26cp-6F, 0x1.59dab6p-5F);
  return fma(square * x, p, x);
}

// asin(m) of m = |x| or, above 1/2, of sqrt((1 - m) / 2), which is pi / 4 - asin(m) / 2.
struct AsinParts {
  Mask<float> is_large;
  Vec<float> angle;
};

[[gnu::always_inline]] inline AsinParts reduce_asin(Vec<float> x) {
  const Vec<float> half = Vec<float>::fill(0.5F);
  const Vec<float> magnitude = abs(x);
  const Mask<float> is_large = magnitude > half;
  const Vec<float> rest = fnma(half, magnitude, half);
  const Vec<float> square = select(is_large, rest, magnitude * magnitude);
  return {is_large, asin_reduced(select(is_large, sqrt(rest), magnitude), square)};
}

[[gnu::always_inline]] inline Vec<float> asin(Vec<float> x) {
  const AsinParts parts = reduce_asin(x);
  const Vec<float> large = less_than_half_pi(parts.angle + parts.angle);
  return copysign(select(parts.is_large, large, parts.angle), x);
}

// pi / 2 - asin(x); near 1 twice the reduced angle, near -1 pi less it.
[[gnu::always_inline]] inline Vec<float> acos(Vec<float> x) {
  const AsinParts parts = reduce_asin(x);
  const Vec<float> twice = parts.angle + parts.angle;
  const Vec<float> opposite =
      (Vec<float>::fill(2 * kHalfPi) - twice) + Vec<float>::fill(2 * kHalfPiRest);
  const Vec<float> large = select(x < Vec<float>::zero(), opposite, twice);
  return select(parts.is_large, large, less_than_half_pi(copysign(parts.angle, x)));
}

inline Vec<double> tan(Vec<double> x) {
  return each_lane(x, [](double v) { return ::tan(v); });
}

inline Vec<double> atan(Vec<double> x) {
  return each_lane(x, [](double v) { return ::atan(v); });
}

inline Vec<double> asin(Vec<double> x) {
  return each_lane(x, [](double v) { return ::asin(v); });
}

inline Vec<double> acos(Vec<double> x) {
  return each_lane(x, [](double v) { return ::acos(v); });
}

#include "ops/kernel/isa_end.h"
