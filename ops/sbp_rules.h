// SBP rules shared by families. "All B" is added by the library and never listed here.
#pragma once

#include <cstdint>

#include "core/op.h"

namespace flow::ops {

// S(i) for every dim of the outputs, which all have the first output's shape: element [i] depends
// on the same index of the inputs only. Inputs are aligned from the right; one that is broadcast
// along the dim, or was not given, is B.
void elementwise_sbp(SbpContext& ctx);

// What an elementwise function of one tensor does to values that are partial over ranks.
//   kLinear      f(a + b) = f(a) + f(b)                                      P -> P
//   kIncreasing  f(max(a, b)) = max(f(a), f(b)), and so for min              P(max) -> P(max), …
//   kDecreasing  f(max(a, b)) = min(f(a), f(b)), and so for min              P(max) -> P(min), …
// Integers wrap around, so only functions that compute no sums or products of integers keep their
// order; arithmetic_sbp is the rule of the functions that do. A function that is NaN below some
// bound, such as log, accepts only a minimum, because the parts of a maximum may be below that
// bound.
enum Partials : uint32_t {
  kNoPartials = 0,
  kLinear = 1,
  kMaxToMax = 2,
  kMinToMin = 4,
  kMaxToMin = 8,
  kMinToMax = 16,
  kIncreasing = kMaxToMax | kMinToMin,
  kDecreasing = kMaxToMin | kMinToMax,
};

void add_partials(SbpContext& ctx, uint32_t partials);

// Keeps kLinear always, and the order of the first input's elements only if they are floating.
void add_arithmetic_partials(SbpContext& ctx, uint32_t partials);

// The rule of a unary op.
template <uint32_t kPartials>
void unary_sbp(SbpContext& ctx) {
  elementwise_sbp(ctx);
  add_partials(ctx, kPartials);
}

// The rule of a unary op that computes with the values.
template <uint32_t kPartials>
void arithmetic_sbp(SbpContext& ctx) {
  elementwise_sbp(ctx);
  add_arithmetic_partials(ctx, kPartials);
}

}  // namespace flow::ops
