#include "ops/elementwise/trigonometry.h"

#include "core/default_dtype.h"
#include "core/dispatch.h"
#include "ops/autocast.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/trigonometry_op.h"
#include "ops/elementwise/unary.h"
#include "ops/promotion.h"
#include "ops/reduce/reduce.h"
#include "ops/sbp_rules.h"

namespace flow {

namespace ops {

namespace {

void infer_unary(InferContext& ctx) {
  ctx.check(is_floating(ctx.input(0).dtype), "needs a floating dtype; cast first");
  ctx.add_output_like(0);
}

void infer_atan2(InferContext& ctx) {
  ctx.check(is_floating(ctx.input(0).dtype) && ctx.input(0).dtype == ctx.input(1).dtype,
            "needs floating operands of one dtype; call the public function, which promotes");
  ctx.add_output(broadcast_shapes(ctx.input(0).shape, ctx.input(1).shape, "atan2"),
                 ctx.input(0).dtype);
}

// dx = kRule(dy, x), zero when dy is.
template <Tensor (*kRule)(const Tensor& dy, const Tensor& x)>
void grad(GradContext& ctx) {
  if (ctx.dy().defined()) ctx.set(0, kRule(ctx.dy(), ctx.input(0)));
}

// dx = dy (1 + tan(x)^2)
Tensor dx_tan(const Tensor& dy, const Tensor& x) {
  return mul(dy, square(tan(x)) + 1);
}

// dx = dy / sqrt(1 - x^2)
Tensor dx_asin(const Tensor& dy, const Tensor& x) {
  return mul(dy, rsqrt(1 - square(x)));
}

// dx = -dy / sqrt(1 - x^2)
Tensor dx_acos(const Tensor& dy, const Tensor& x) {
  return neg(mul(dy, rsqrt(1 - square(x))));
}

// dx = dy / (1 + x^2)
Tensor dx_atan(const Tensor& dy, const Tensor& x) {
  return div(dy, square(x) + 1);
}

// dx = dy cosh(x)
Tensor dx_sinh(const Tensor& dy, const Tensor& x) {
  return mul(dy, cosh(x));
}

// dx = dy sinh(x)
Tensor dx_cosh(const Tensor& dy, const Tensor& x) {
  return mul(dy, sinh(x));
}

// dx = dy / sqrt(x^2 + 1)
Tensor dx_asinh(const Tensor& dy, const Tensor& x) {
  return mul(dy, rsqrt(square(x) + 1));
}

// dx = dy / sqrt(x^2 - 1)
Tensor dx_acosh(const Tensor& dy, const Tensor& x) {
  return mul(dy, rsqrt(square(x) - 1));
}

// dx = dy / (1 - x^2)
Tensor dx_atanh(const Tensor& dy, const Tensor& x) {
  return div(dy, 1 - square(x));
}

// dy = g x / (x^2 + y^2), dx = -g y / (x^2 + y^2) for the upstream g
void grad_atan2(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const Tensor y = ctx.input(0);
  const Tensor x = ctx.input(1);
  const Tensor share = div(ctx.dy(), square(y) + square(x));
  if (ctx.needs(0)) ctx.set(0, sum_to(mul(share, x), ctx.input_meta(0)->shape));
  if (ctx.needs(1)) ctx.set(1, sum_to(neg(mul(share, y)), ctx.input_meta(1)->shape));
}

constexpr OpDef row(const char* name, SbpFn sbp, GradFn grad) {
  return {
      .name = name,
      .infer = infer_unary,
      .sbp = sbp,
      .grad = grad,
      .saved_inputs = 1,
      .allows_in_place = true,
  };
}

constexpr SbpFn kRises = unary_sbp<kIncreasing>;

}  // namespace

// Functions that are NaN on both sides of their domain keep no order of parts.
const OpDef kTan = in_float32(row("tan", elementwise_sbp, grad<dx_tan>));
const OpDef kAsin = in_float32(row("asin", elementwise_sbp, grad<dx_asin>));
const OpDef kAcos = in_float32(row("acos", elementwise_sbp, grad<dx_acos>));
const OpDef kAtan = row("atan", kRises, grad<dx_atan>);
const OpDef kSinh = in_float32(row("sinh", kRises, grad<dx_sinh>));
const OpDef kCosh = in_float32(row("cosh", elementwise_sbp, grad<dx_cosh>));
const OpDef kAsinh = row("asinh", kRises, grad<dx_asinh>);
const OpDef kAcosh = row("acosh", unary_sbp<kMinToMin>, grad<dx_acosh>);
const OpDef kAtanh = row("atanh", elementwise_sbp, grad<dx_atanh>);

const OpDef kAtan2 = {
    .name = "atan2",
    .num_inputs = 2,
    .infer = infer_atan2,
    .sbp = elementwise_sbp,
    .grad = grad_atan2,
    .saved_inputs = 3,
    .allows_in_place = true,
};

void register_trigonometry(OpTable& table) {
  for (const OpDef* op :
       {&kTan, &kAsin, &kAcos, &kAtan, &kSinh, &kCosh, &kAsinh, &kAcosh, &kAtanh, &kAtan2}) {
    table.add(*op);
  }
}

}  // namespace ops

namespace {

// Integers and bools are taken as default_dtype().
Tensor run(const OpDef& op, const TensorArg& x) {
  if (is_floating(x->dtype())) [[likely]]
    return dispatch(op, {&x.tensor()}, x.site());
  const Tensor floating = cast(x, default_dtype());
  return dispatch(op, {&floating}, x.site());
}

}  // namespace

Tensor tan(const TensorArg& x) {
  return run(ops::kTan, x);
}

Tensor asin(const TensorArg& x) {
  return run(ops::kAsin, x);
}

Tensor acos(const TensorArg& x) {
  return run(ops::kAcos, x);
}

Tensor atan(const TensorArg& x) {
  return run(ops::kAtan, x);
}

Tensor sinh(const TensorArg& x) {
  return run(ops::kSinh, x);
}

Tensor cosh(const TensorArg& x) {
  return run(ops::kCosh, x);
}

Tensor asinh(const TensorArg& x) {
  return run(ops::kAsinh, x);
}

Tensor acosh(const TensorArg& x) {
  return run(ops::kAcosh, x);
}

Tensor atanh(const TensorArg& x) {
  return run(ops::kAtanh, x);
}

Tensor atan2(const TensorArg& y, const TensorArg& x) {
  return ops::dispatch_promoted(ops::kAtan2, y, x, ops::Promotion::kToFloating);
}

Tensor PointwiseMethods::tan(Site site) const {
  return flow::tan(TensorArg(self(), site));
}

Tensor PointwiseMethods::asin(Site site) const {
  return flow::asin(TensorArg(self(), site));
}

Tensor PointwiseMethods::acos(Site site) const {
  return flow::acos(TensorArg(self(), site));
}

Tensor PointwiseMethods::atan(Site site) const {
  return flow::atan(TensorArg(self(), site));
}

Tensor PointwiseMethods::sinh(Site site) const {
  return flow::sinh(TensorArg(self(), site));
}

Tensor PointwiseMethods::cosh(Site site) const {
  return flow::cosh(TensorArg(self(), site));
}

Tensor PointwiseMethods::asinh(Site site) const {
  return flow::asinh(TensorArg(self(), site));
}

Tensor PointwiseMethods::acosh(Site site) const {
  return flow::acosh(TensorArg(self(), site));
}

Tensor PointwiseMethods::atanh(Site site) const {
  return flow::atanh(TensorArg(self(), site));
}

Tensor PointwiseMethods::atan2(const TensorArg& other) const {
  return flow::atan2(TensorArg(self(), other.site()), other);
}

}  // namespace flow
