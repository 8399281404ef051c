#include "ops/elementwise/activation_and_grad_op.h"
#include "ops/sbp_rules.h"

namespace flow::ops {

namespace {

void infer(InferContext& ctx) {
  const TensorMeta &first = ctx.input(0), &second = ctx.input(1);
  ctx.check(is_floating(second.dtype), "the tensors must be floating");
  ctx.check(first.shape == second.shape && first.dtype == second.dtype,
            "shapes or dtypes differ; expand or cast one");
  ctx.add_output_like(0);
  ctx.add_output_like(1);
}

// Linear in dy.
void sbp_of_grad(SbpContext& ctx) {
  elementwise_sbp(ctx);
  ctx.add({sbp::partial_sum, sbp::broadcast}, {sbp::partial_sum, sbp::broadcast});
}

constexpr OpDef row(const char* name, SbpFn sbp) {
  return {.name = name,
          .num_inputs = 2,
          .num_outputs = 2,
          .infer = infer,
          .sbp = sbp,
          .grad = not_differentiable,
          .mutates = 0b11};
}

}  // namespace

const OpDef kGeluAndGrad = row("gelu_and_grad", sbp_of_grad);
const OpDef kGeluTanhAndGrad = row("gelu_tanh_and_grad", sbp_of_grad);
const OpDef kSiluAndGrad = row("silu_and_grad", sbp_of_grad);
const OpDef kGeluAndSlope = row("gelu_and_slope", elementwise_sbp);
const OpDef kGeluTanhAndSlope = row("gelu_tanh_and_slope", elementwise_sbp);
const OpDef kSiluAndSlope = row("silu_and_slope", elementwise_sbp);

void register_activation_and_grad(OpTable& table);

void register_activation_and_grad(OpTable& table) {
  for (const OpDef* op : {&kGeluAndGrad, &kGeluTanhAndGrad, &kSiluAndGrad, &kGeluAndSlope,
                          &kGeluTanhAndSlope, &kSiluAndSlope}) {
    table.add(*op);
  }
}

}  // namespace flow::ops
