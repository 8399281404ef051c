#include "ops/elementwise/activation_and_grad_op.h"
#include "ops/sbp_rules.h"

namespace flow::ops {

namespace {

void infer(InferContext& ctx) {
  const TensorMeta &dy = ctx.input(0), &x = ctx.input(1);
  ctx.check(is_floating(x.dtype), "the tensors must be floating");
  ctx.check(dy.shape == x.shape && dy.dtype == x.dtype,
            "shapes or dtypes differ; expand or cast one");
  ctx.add_output_like(0);
  ctx.add_output_like(1);
}

// Linear in dy.
void sbp(SbpContext& ctx) {
  elementwise_sbp(ctx);
  ctx.add({sbp::partial_sum, sbp::broadcast}, {sbp::partial_sum, sbp::broadcast});
}

constexpr OpDef row(const char* name) {
  return {.name = name,
          .num_inputs = 2,
          .num_outputs = 2,
          .infer = infer,
          .sbp = sbp,
          .grad = not_differentiable,
          .mutates = 0b11};
}

}  // namespace

const OpDef kGeluAndGrad = row("gelu_and_grad");
const OpDef kGeluTanhAndGrad = row("gelu_tanh_and_grad");
const OpDef kSiluAndGrad = row("silu_and_grad");

void register_activation_and_grad(OpTable& table);

void register_activation_and_grad(OpTable& table) {
  for (const OpDef* op : {&kGeluAndGrad, &kGeluTanhAndGrad, &kSiluAndGrad})
    table.add(*op);
}

}  // namespace flow::ops
