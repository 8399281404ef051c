// hardtanh of batch_norm as one op, which the compiler of graphs makes of two.
#include <algorithm>

#include "ops/norm/batch_norm_op.h"

namespace flow::ops {

namespace {

// Adds the outputs of the op without hardtanh.
void add_outputs_of(const OpDef& op, std::span<const MetaPtr> inputs, InferContext& ctx) {
  const BatchNormAttrs attrs{.eps = ctx.attrs<BatchNormHardtanhAttrs>().eps};
  InferContext alone(op, inputs, &attrs);
  op.infer(alone);
  for (const OutputSpec& output : alone.outputs())
    ctx.add_output(output);
}

void infer(InferContext& ctx) {
  add_outputs_of(kBatchNorm, ctx.inputs(), ctx);
}

// Channels are independent. The result increases with the bias.
void sbp(SbpContext& ctx) {
  using sbp::broadcast, sbp::split;
  ctx.add(
      {split(1), ctx.has_input(1) ? split(0) : broadcast, ctx.has_input(2) ? split(0) : broadcast},
      {split(1), split(1)});
  if (!ctx.has_input(2)) return;
  for (const Sbp partial : {sbp::partial_max, sbp::partial_min})
    ctx.add({broadcast, broadcast, partial}, {partial, broadcast});
}

// A batch of its own has its own moments.
void sbp_own_batch(SbpContext& ctx) {
  using sbp::broadcast, sbp::split;
  ctx.add({split(0), broadcast, broadcast}, {split(0), broadcast});
}

int64_t elements_of_batch(const OpContext& ctx) {
  const Shape& x = ctx.input(0).shape;
  return x.numel() / std::max<int64_t>(x[1], 1);
}

void infer_backward(InferContext& ctx) {
  ctx.check(ctx.input(1).shape == ctx.input(2).shape && ctx.input(1).dtype == ctx.input(2).dtype,
            "the result must have the input's shape and dtype");
  const std::vector<MetaPtr> inputs{ctx.inputs()[0], ctx.inputs()[2], ctx.inputs()[3],
                                    ctx.inputs()[4]};
  add_outputs_of(kBatchNormBackward, inputs, ctx);
}

// Channels are independent; all is linear in dy, and dx in the weight.
void sbp_backward(SbpContext& ctx) {
  using sbp::broadcast, sbp::partial_sum, sbp::split;
  ctx.add({split(1), split(1), split(1), split(1), ctx.has_input(4) ? split(0) : broadcast},
          {split(1), split(0), split(0)});
  ctx.add({partial_sum, broadcast, broadcast, broadcast, broadcast},
          {partial_sum, partial_sum, partial_sum});
  if (!ctx.has_input(4)) return;
  ctx.add({broadcast, broadcast, broadcast, broadcast, partial_sum},
          {partial_sum, broadcast, broadcast});
}

// Gradients of the parameters are sums over all batches.
void sbp_own_batch_backward(SbpContext& ctx) {
  using sbp::broadcast, sbp::partial_sum, sbp::split;
  ctx.add({split(0), split(0), split(0), broadcast, broadcast},
          {split(0), partial_sum, partial_sum});
}

}  // namespace

const OpDef kBatchNormHardtanh{.name = "batch_norm_hardtanh",
                               .num_inputs = 3,
                               .num_outputs = 2,
                               .attrs = attrs_def<BatchNormHardtanhAttrs>(),
                               .infer = infer,
                               .sbp = sbp,
                               .grad = not_differentiable,
                               .micro_batch = {.own_batch_sbp = sbp_own_batch,
                                               .statistics = {"batch_norm", elements_of_batch}}};

const OpDef kBatchNormHardtanhBackward{.name = "batch_norm_hardtanh_backward",
                                       .num_inputs = 5,
                                       .num_outputs = 3,
                                       .attrs = attrs_def<BatchNormHardtanhAttrs>(),
                                       .infer = infer_backward,
                                       .sbp = sbp_backward,
                                       .grad = not_differentiable,
                                       .micro_batch = {.own_batch_sbp = sbp_own_batch_backward}};

void register_batch_norm_hardtanh(OpTable& table);

void register_batch_norm_hardtanh(OpTable& table) {
  table.add(kBatchNormHardtanh);
  table.add(kBatchNormHardtanhBackward);
}

}  // namespace flow::ops
