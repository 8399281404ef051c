// sin and cos of Vec<float>, for ops/kernel/vector_math.h; below 2 units of the last place, all
// magnitudes.
#pragma once

#include <cmath>
#include <cstdint>

#include "ops/kernel/vector.h"

#include "ops/kernel/isa_begin.h"

// x = n pi / 2 + r with |r| <= 0.79, n up to 2^16 with fma; the first part of pi / 2 times n, and
// the difference, are exact. Without fma the parts have 12 bits, for n below 2^12.
struct TrigParts {
  Vec<int32_t> quadrant;
  Vec<float> r;
};

#if FLOW_ISA == 0
constexpr float kTrigLimit = 6000.0F;
#else
constexpr float kTrigLimit = 65536.0F;
#endif

[[gnu::always_inline]] inline TrigParts reduce_trig(Vec<float> x) {
  const Vec<float> n = round_even(x * Vec<float>::fill(0.636619772F));
#if FLOW_ISA == 0
  Vec<float> r = x - n * Vec<float>::fill(0x1.920p+0F);
  r = r - n * Vec<float>::fill(0x1.fb4p-12F);
  r = r - n * Vec<float>::fill(0x1.444p-24F);
  r = r - n * Vec<float>::fill(0x1.68c234p-39F);
#else
  Vec<float> r = fnma(n, Vec<float>::fill(0x1.921fb6p+0F), x);
  r = fnma(n, Vec<float>::fill(-0x1.777a5cp-25F), r);
  r = fnma(n, Vec<float>::fill(-0x1.ee59dap-50F), r);
#endif
  return {to_int(n), r};
}

// sin(r), fit 2^-28, and cos(r), fit 2^-33, exchanged in odd quadrants, negated in the upper two.
[[gnu::always_inline]] inline Vec<float> sin_of_parts(Vec<float> r, Vec<int32_t> quadrant) {
  const Vec<float> square = r * r;
  const Vec<float> sine =
      fma(square * r, polynomial(square, -0x1.555546p-3F, 0x1.11077cp-7F, -0x1.9955aep-13F), r);
  const Vec<float> quartic =
      square * square * polynomial(square, 0x1.55554ap-5F, -0x1.6c0c1ap-10F, 0x1.99e0eep-16F);
  const Vec<float> cosine = fnma(Vec<float>::fill(0.5F), square, Vec<float>::fill(1.0F)) + quartic;
  const Mask<float> even = (quadrant & Vec<int32_t>::fill(1)) == Vec<int32_t>::fill(0);
  const Vec<int32_t> sign = shift_left<30>(quadrant & Vec<int32_t>::fill(2));
  return as_float(as_int(select(even, sine, cosine)) ^ sign);
}

[[gnu::always_inline]] inline Vec<float> sin(Vec<float> x) {
  if (!all(abs(x) < Vec<float>::fill(kTrigLimit)))
    return each_lane(x, [](float lane) { return ::sinf(lane); });
  const TrigParts parts = reduce_trig(x);
  return select(x == Vec<float>::zero(), x, sin_of_parts(parts.r, parts.quadrant));
}

[[gnu::always_inline]] inline Vec<float> cos(Vec<float> x) {
  if (!all(abs(x) < Vec<float>::fill(kTrigLimit)))
    return each_lane(x, [](float lane) { return ::cosf(lane); });
  const TrigParts parts = reduce_trig(x);
  return sin_of_parts(parts.r, parts.quadrant + Vec<int32_t>::fill(1));
}

#include "ops/kernel/isa_end.h"
