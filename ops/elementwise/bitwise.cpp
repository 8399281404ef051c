#include "ops/elementwise/bitwise.h"

#include "core/dispatch.h"
#include "ops/elementwise/bitwise_op.h"
#include "ops/promotion.h"
#include "ops/sbp_rules.h"

namespace flow {

namespace ops {

namespace {

void infer_not(InferContext& ctx) {
  ctx.check(!is_floating(ctx.input(0).dtype), "needs integers or bools; cast first");
  ctx.add_output_like(0);
}

void infer_bits(InferContext& ctx) {
  ctx.check(!is_floating(ctx.input(0).dtype), "needs integers or bools; cast first");
  ctx.check(ctx.input(0).dtype == ctx.input(1).dtype,
            "dtypes differ; cast one, or call the public function, which promotes");
  ctx.add_output(broadcast_shapes(ctx.input(0).shape, ctx.input(1).shape, ctx.op().name),
                 ctx.input(0).dtype);
}

void infer_shift(InferContext& ctx) {
  ctx.check(ctx.input(0).dtype != DType::kBool, "is not defined for bool; cast first");
  infer_bits(ctx);
}

// Shifting left multiplies by a power of two and wraps around.
void sbp_left_shift(SbpContext& ctx) {
  elementwise_sbp(ctx);
  ctx.add({sbp::partial_sum, sbp::broadcast}, {sbp::partial_sum});
}

// Shifting right keeps the order.
void sbp_right_shift(SbpContext& ctx) {
  elementwise_sbp(ctx);
  for (const Sbp side : {sbp::partial_max, sbp::partial_min})
    ctx.add({side, sbp::broadcast}, {side});
}

constexpr OpDef row(const char* name, InferFn infer, SbpFn sbp = elementwise_sbp) {
  return {
      .name = name,
      .num_inputs = 2,
      .infer = infer,
      .sbp = sbp,
      .grad = not_differentiable,
      .allows_in_place = true,
  };
}

}  // namespace

const OpDef kBitwiseAnd = row("bitwise_and", infer_bits);
const OpDef kBitwiseOr = row("bitwise_or", infer_bits);
const OpDef kBitwiseXor = row("bitwise_xor", infer_bits);
const OpDef kLeftShift = row("bitwise_left_shift", infer_shift, sbp_left_shift);
const OpDef kRightShift = row("bitwise_right_shift", infer_shift, sbp_right_shift);
// -x - 1, or "not": both reverse the order.
const OpDef kBitwiseNot = {.name = "bitwise_not",
                           .infer = infer_not,
                           .sbp = unary_sbp<kDecreasing>,
                           .grad = not_differentiable,
                           .allows_in_place = true};

void register_bitwise(OpTable& table) {
  for (const OpDef* op :
       {&kBitwiseAnd, &kBitwiseOr, &kBitwiseXor, &kBitwiseNot, &kLeftShift, &kRightShift}) {
    table.add(*op);
  }
}

}  // namespace ops

using ops::dispatch_promoted;
using ops::number_like;

Tensor bitwise_and(const TensorArg& a, const TensorArg& b) {
  return dispatch_promoted(ops::kBitwiseAnd, a, b);
}

Tensor bitwise_and(const TensorArg& a, const Scalar& b) {
  return bitwise_and(a, number_like(a, b));
}

Tensor bitwise_or(const TensorArg& a, const TensorArg& b) {
  return dispatch_promoted(ops::kBitwiseOr, a, b);
}

Tensor bitwise_or(const TensorArg& a, const Scalar& b) {
  return bitwise_or(a, number_like(a, b));
}

Tensor bitwise_xor(const TensorArg& a, const TensorArg& b) {
  return dispatch_promoted(ops::kBitwiseXor, a, b);
}

Tensor bitwise_xor(const TensorArg& a, const Scalar& b) {
  return bitwise_xor(a, number_like(a, b));
}

Tensor bitwise_not(const TensorArg& x) {
  return dispatch(ops::kBitwiseNot, {&x.tensor()}, x.site());
}

Tensor bitwise_left_shift(const TensorArg& a, const TensorArg& b) {
  return dispatch_promoted(ops::kLeftShift, a, b);
}

Tensor bitwise_left_shift(const TensorArg& a, const Scalar& b) {
  return bitwise_left_shift(a, number_like(a, b));
}

Tensor bitwise_right_shift(const TensorArg& a, const TensorArg& b) {
  return dispatch_promoted(ops::kRightShift, a, b);
}

Tensor bitwise_right_shift(const TensorArg& a, const Scalar& b) {
  return bitwise_right_shift(a, number_like(a, b));
}

Tensor operator&(const TensorArg& a, const TensorArg& b) {
  return bitwise_and(a, b);
}

Tensor operator|(const TensorArg& a, const TensorArg& b) {
  return bitwise_or(a, b);
}

Tensor operator^(const TensorArg& a, const TensorArg& b) {
  return bitwise_xor(a, b);
}

Tensor operator~(const TensorArg& x) {
  return bitwise_not(x);
}

Tensor PointwiseMethods::bitwise_and(const TensorArg& other) const {
  return flow::bitwise_and(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::bitwise_and(const Scalar& other, Site site) const {
  return flow::bitwise_and(TensorArg(self(), site), other);
}

Tensor PointwiseMethods::bitwise_or(const TensorArg& other) const {
  return flow::bitwise_or(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::bitwise_or(const Scalar& other, Site site) const {
  return flow::bitwise_or(TensorArg(self(), site), other);
}

Tensor PointwiseMethods::bitwise_xor(const TensorArg& other) const {
  return flow::bitwise_xor(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::bitwise_xor(const Scalar& other, Site site) const {
  return flow::bitwise_xor(TensorArg(self(), site), other);
}

Tensor PointwiseMethods::bitwise_left_shift(const TensorArg& other) const {
  return flow::bitwise_left_shift(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::bitwise_left_shift(const Scalar& other, Site site) const {
  return flow::bitwise_left_shift(TensorArg(self(), site), other);
}

Tensor PointwiseMethods::bitwise_right_shift(const TensorArg& other) const {
  return flow::bitwise_right_shift(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::bitwise_right_shift(const Scalar& other, Site site) const {
  return flow::bitwise_right_shift(TensorArg(self(), site), other);
}

Tensor PointwiseMethods::bitwise_not(Site site) const {
  return flow::bitwise_not(TensorArg(self(), site));
}

}  // namespace flow
