#include "ops/elementwise/row_layouts.h"

#include <cmath>

#include "ops/elementwise/binary_op.h"
#include "ops/promotion.h"
#include "ops/sbp_rules.h"

namespace flow::ops {

namespace {

constexpr Sbp kB = sbp::broadcast;
constexpr Sbp kP = sbp::partial_sum;
constexpr Sbp kMax = sbp::partial_max;
constexpr Sbp kMin = sbp::partial_min;

Sbp other(Sbp side) {
  return side == kMax ? kMin : kMax;
}

double number_of(const SbpContext& ctx) {
  return ctx.attrs<ScalarAttrs>().value.to<double>();
}

void add_sum(SbpContext& ctx, bool falls_in_b) {
  elementwise_sbp(ctx);
  ctx.add({kP, kP}, {kP});
  if (!is_floating(ctx.input(0).dtype)) return;  // integers wrap around
  for (const Sbp side : {kMax, kMin}) {
    ctx.add({side, kB}, {side});
    ctx.add({kB, side}, {falls_in_b ? other(side) : side});
  }
}

void add_rises(SbpContext& ctx) {
  for (const Sbp side : {kMax, kMin}) {
    ctx.add({side, kB}, {side});
    ctx.add({kB, side}, {side});
  }
}

void add_extremum(SbpContext& ctx, Sbp own) {
  elementwise_sbp(ctx);
  ctx.add({own, own}, {own});
  add_rises(ctx);
}

// For bools, "a < b" is "b and not a", and so on. is_and: the minimum of both passes at once.
void add_order(SbpContext& ctx, bool rises_in_a, bool is_and) {
  elementwise_sbp(ctx);
  for (const Sbp side : {kMax, kMin}) {
    ctx.add({side, kB}, {rises_in_a ? side : other(side)});
    ctx.add({kB, side}, {rises_in_a ? other(side) : side});
  }
  if (ctx.input(0).dtype == DType::kBool) {
    const Sbp out = is_and ? kMin : kMax;
    ctx.add({rises_in_a ? out : other(out), rises_in_a ? other(out) : out}, {out});
  }
}

void add_logical(SbpContext& ctx, Sbp own) {
  elementwise_sbp(ctx);
  if (ctx.input(0).dtype != DType::kBool) return;
  ctx.add({own, own}, {own});
  add_rises(ctx);
}

void add_addc(SbpContext& ctx) {
  elementwise_sbp(ctx);
  ctx.add({kP, kP, kB}, {kP});
  if (!is_floating(ctx.input(0).dtype)) return;
  for (const Sbp side : {kMax, kMin})
    ctx.add({side, kB, kB}, {side});
}

}  // namespace

void sbp_isnan(SbpContext& ctx) {
  elementwise_sbp(ctx);
  for (const Sbp partial : {kMax, kMin})
    ctx.add({partial}, {kMax});
}

void sbp_logical_not(SbpContext& ctx) {
  elementwise_sbp(ctx);
  add_partials(ctx, ctx.input(0).dtype == DType::kBool ? kDecreasing : kNoPartials);
}

void sbp_add(SbpContext& ctx) {
  add_sum(ctx, ctx.attrs<AddAttrs>().alpha < 0);
}

void sbp_sub(SbpContext& ctx) {
  add_sum(ctx, true);
}

void sbp_mul(SbpContext& ctx) {
  elementwise_sbp(ctx);
  ctx.add({kP, kB}, {kP});
  ctx.add({kB, kP}, {kP});
}

void sbp_linear_in_a(SbpContext& ctx) {
  elementwise_sbp(ctx);
  ctx.add({kP, kB}, {kP});
}

void sbp_maximum(SbpContext& ctx) {
  add_extremum(ctx, kMax);
}

void sbp_minimum(SbpContext& ctx) {
  add_extremum(ctx, kMin);
}

void sbp_rises(SbpContext& ctx) {
  elementwise_sbp(ctx);
  add_rises(ctx);
}

void sbp_rises_in_a(SbpContext& ctx) {
  elementwise_sbp(ctx);
  for (const Sbp side : {kMax, kMin})
    ctx.add({side, kB}, {side});
}

void sbp_rises_in_b(SbpContext& ctx) {
  elementwise_sbp(ctx);
  for (const Sbp side : {kMax, kMin})
    ctx.add({kB, side}, {side});
}

void sbp_lt(SbpContext& ctx) {
  add_order(ctx, false, true);
}

void sbp_le(SbpContext& ctx) {
  add_order(ctx, false, false);
}

void sbp_gt(SbpContext& ctx) {
  add_order(ctx, true, true);
}

void sbp_ge(SbpContext& ctx) {
  add_order(ctx, true, false);
}

void sbp_logical_and(SbpContext& ctx) {
  add_logical(ctx, kMin);
}

void sbp_logical_or(SbpContext& ctx) {
  add_logical(ctx, kMax);
}

void sbp_scale(SbpContext& ctx) {
  const double scale = number_of(ctx);
  elementwise_sbp(ctx);
  add_arithmetic_partials(ctx, kLinear | (scale > 0 ? kIncreasing : kNoPartials) |
                                   (scale < 0 ? kDecreasing : kNoPartials));
}

void sbp_trunc_divide_number(SbpContext& ctx) {
  const double c = number_of(ctx);
  elementwise_sbp(ctx);
  if (c > 0) add_arithmetic_partials(ctx, kIncreasing);
  if (c < 0) add_arithmetic_partials(ctx, kDecreasing);
}

void sbp_pow_number(SbpContext& ctx) {
  const double c = number_of(ctx);
  elementwise_sbp(ctx);
  if (c == 1) {
    add_partials(ctx, kLinear | kIncreasing);
  } else if (c > 0 && std::fmod(c, 2) == 1) {
    add_arithmetic_partials(ctx, kIncreasing);
  } else if (c == 0.5) {
    add_arithmetic_partials(ctx, kMinToMin);
  }
}

void sbp_number_pow(SbpContext& ctx) {
  const double c = number_of(ctx);
  elementwise_sbp(ctx);
  if (c > 1) add_arithmetic_partials(ctx, kIncreasing);
  if (c > 0 && c < 1) add_arithmetic_partials(ctx, kDecreasing);
}

void sbp_addcmul(SbpContext& ctx) {
  add_addc(ctx);
  ctx.add({kP, kB, kP}, {kP});
}

void sbp_addcdiv(SbpContext& ctx) {
  add_addc(ctx);
}

void sbp_lerp(SbpContext& ctx) {
  elementwise_sbp(ctx);
  ctx.add({kP, kP, kB}, {kP});
}

// Parts of a maximum or minimum may be infinite, and the formula must not give NaN for them. Near
// the start it is start + weight (end - start), else end - (1 - weight) (end - start).
void sbp_lerp_number(SbpContext& ctx) {
  const double weight = number_of(ctx);
  const bool is_near = std::abs(weight) < 0.5;
  elementwise_sbp(ctx);
  ctx.add({kP, kP}, {kP});
  for (const Sbp side : {kMax, kMin}) {
    if ((is_near && weight != 0) || weight > 1)
      ctx.add({kB, side}, {weight > 0 ? side : other(side)});
    if ((!is_near && weight != 1) || weight < 0)
      ctx.add({side, kB}, {weight < 1 ? side : other(side)});
  }
}

void sbp_where(SbpContext& ctx) {
  elementwise_sbp(ctx);
  ctx.add({kB, kP, kP}, {kP});
  for (const Sbp side : {kMax, kMin}) {
    ctx.add({kB, side, side}, {side});
    ctx.add({kB, side, kB}, {side});
    ctx.add({kB, kB, side}, {side});
  }
}

void sbp_masked_fill(SbpContext& ctx) {
  elementwise_sbp(ctx);
  for (const Sbp side : {kMax, kMin})
    ctx.add({side, kB}, {side});
  if (number_of(ctx) == 0) ctx.add({kP, kB}, {kP});
}

void sbp_clamp_grad(SbpContext& ctx) {
  elementwise_sbp(ctx);
  for (const Sbp partial : {kP, kMax, kMin})
    ctx.add({partial, kB}, {partial});
}

}  // namespace flow::ops
