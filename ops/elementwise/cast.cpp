#include "ops/elementwise/cast.h"

#include "core/dispatch.h"
#include "ops/elementwise/cast_op.h"
#include "ops/sbp_rules.h"

namespace flow {

namespace ops {

namespace {

void infer(InferContext& ctx) {
  ctx.add_output(ctx.input(0).shape, ctx.attrs<CastAttrs>().dtype);
}

// A partial sum passes into a wider float, in which each part is exact, and into integers that are
// not wider, which wrap around wherever the sum did.
bool keeps_sums(DType from, DType to) {
  if (from == DType::kBool || to == DType::kBool) return false;
  if (is_floating(from)) return is_floating(to) && dtype_size(to) > dtype_size(from);
  return is_integral(to) && dtype_size(to) <= dtype_size(from);
}

// Rounding keeps the order, and so do bytes that are not negative; wrapping around does not.
bool keeps_order(DType from, DType to) {
  if (from == DType::kBool || is_floating(to)) return true;
  if (to == DType::kBool) return from == DType::kUInt8;
  return to == DType::kInt64 || (is_integral(from) && dtype_size(to) > dtype_size(from));
}

void sbp(SbpContext& ctx) {
  const DType from = ctx.input(0).dtype;
  const DType to = ctx.output(0).dtype;
  elementwise_sbp(ctx);
  add_partials(ctx, keeps_sums(from, to) ? kLinear : kNoPartials);
  add_partials(ctx, keeps_order(from, to) ? kIncreasing : kNoPartials);
}

// dx = cast(dy, dtype of x)
void grad(GradContext& ctx) {
  if (ctx.needs(0) && ctx.dy().defined()) ctx.set(0, cast(ctx.dy(), ctx.input_meta(0)->dtype));
}

}  // namespace

const OpDef kCast = {
    .name = "cast",
    .attrs = attrs_def<CastAttrs>(),
    .infer = infer,
    .sbp = sbp,
    .grad = grad,
};

void register_cast(OpTable& table) {
  table.add(kCast);
}

}  // namespace ops

Tensor cast(const TensorArg& x, DType dtype) {
  if (x->dtype() == dtype) return x.tensor();
  return dispatch(ops::kCast, {&x.tensor()}, ops::CastAttrs{dtype}, x.site());
}

Tensor Tensor::to(DType dtype, Site site) const {
  return cast(TensorArg(*this, site), dtype);
}

Tensor ShapeMethods::type_as(const TensorArg& other) const {
  return self().to(other->dtype(), other.site());
}

}  // namespace flow
