#include "ops/elementwise/trigonometry.h"

#include "core/dispatch.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/trigonometry_op.h"
#include "ops/elementwise/unary.h"
#include "ops/promotion.h"
#include "ops/reduce/reduce.h"
#include "ops/sbp_rules.h"

namespace flow {

namespace ops {

namespace {

void infer_atan2(InferContext& ctx) {
  ctx.check(is_floating(ctx.input(0).dtype) && ctx.input(0).dtype == ctx.input(1).dtype,
            "needs floating operands of one dtype; call the public function, which promotes");
  ctx.add_output(broadcast_shapes(ctx.input(0).shape, ctx.input(1).shape, "atan2"),
                 ctx.input(0).dtype);
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

}  // namespace

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
  table.add(kAtan2);
}

}  // namespace ops

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
