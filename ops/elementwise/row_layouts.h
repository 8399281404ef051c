// Layout rules of rows that are not one of the shared rules (ops/sbp_rules.h).
#pragma once

#include "core/op.h"

namespace flow::ops {

// ---- of one tensor

// The maximum and the minimum of parts are NaN if a part is.
void sbp_isnan(SbpContext& ctx);
// For bools, "not" reverses the order. For numbers, zero is in the middle.
void sbp_logical_not(SbpContext& ctx);

// ---- of two tensors

// Sums pass if they are partial in both; an extremum of one passes if the other is whole. A sum
// with a negative alpha falls in b.
void sbp_add(SbpContext& ctx);
void sbp_sub(SbpContext& ctx);
// Linear in each, and linear in the first.
void sbp_mul(SbpContext& ctx);
void sbp_linear_in_a(SbpContext& ctx);
// The maximum of maxima. An extremum of either kind passes if the other tensor is whole, because
// both functions rise in each argument.
void sbp_maximum(SbpContext& ctx);
void sbp_minimum(SbpContext& ctx);
// The function rises in each argument, only in the first, or only in the second.
void sbp_rises(SbpContext& ctx);
void sbp_rises_in_a(SbpContext& ctx);
void sbp_rises_in_b(SbpContext& ctx);
// "a < b" as 0 or 1 falls in a and rises in b; "a > b" does the reverse.
void sbp_lt(SbpContext& ctx);
void sbp_le(SbpContext& ctx);
void sbp_gt(SbpContext& ctx);
void sbp_ge(SbpContext& ctx);
// For bools, "and" is the minimum and "or" the maximum; both rise in each argument.
void sbp_logical_and(SbpContext& ctx);
void sbp_logical_or(SbpContext& ctx);

// ---- of a tensor and a number c

// x c and x / c are linear. The sign of c decides whether they keep or reverse the order.
void sbp_scale(SbpContext& ctx);
// Truncating keeps the order of quotients.
void sbp_trunc_divide_number(SbpContext& ctx);
// Odd whole powers keep the order, for negative numbers too. The square root is NaN below zero;
// other positive powers are NaN or infinite there, and whole negative ones reverse the order at the
// pole.
void sbp_pow_number(SbpContext& ctx);
void sbp_number_pow(SbpContext& ctx);

// ---- of three tensors

// Linear in x and a together, and addcmul in x and b too. The order of x carries over to y.
// Integers wrap around.
void sbp_addcmul(SbpContext& ctx);
void sbp_addcdiv(SbpContext& ctx);
// Linear in both ends together.
void sbp_lerp(SbpContext& ctx);
// Rises in the start if the weight is below 1, and in the end if it is above 0. This holds to the
// last bit only if all terms of the formula that contain it go one way: start + weight d near the
// start, else end + (weight - 1) d, with d = end - start.
void sbp_lerp_number(SbpContext& ctx);
// If all ranks choose the same side, partial values pass. A whole tensor is its own maximum and
// minimum over ranks.
void sbp_where(SbpContext& ctx);
// As where with a number: a number is its own maximum and minimum, and only 0 is its own sum.
void sbp_masked_fill(SbpContext& ctx);
// The result is dy or zero, the same choice on all ranks.
void sbp_clamp_grad(SbpContext& ctx);

}  // namespace flow::ops
