#include "ops/loss/partial_fc.h"

#include "core/dispatch.h"
#include "ops/index/embedding_op.h"
#include "ops/loss/partial_fc_op.h"

namespace flow {

namespace ops {

bool SampledParts::held_alike(int64_t rows, int64_t samples, int64_t num_ranks) const {
  if (num_ranks == 0 || num_parts == 0) return false;
  if (rows == num_rows && samples == num_sample && num_parts == num_ranks) return true;
  // If all parts have the same size, any number of them is a balanced part of the whole.
  if (num_rows % num_parts != 0 || num_sample % num_parts != 0) return false;
  const int64_t part_rows = num_rows / num_parts;
  const int64_t parts = rows / part_rows;
  return rows % part_rows == 0 && parts % num_ranks == 0 &&
         samples == parts * (num_sample / num_parts);
}

namespace {

void infer_sample(InferContext& ctx) {
  const auto& attrs = ctx.attrs<SampledParts>();
  const TensorMeta& weight = ctx.input(0);
  const TensorMeta& label = ctx.input(1);
  ctx.check(is_floating(weight.dtype) && weight.dim() == 2,
            "weight must be a floating matrix (classes, D)");
  ctx.check((label.dtype == DType::kInt64 || label.dtype == DType::kInt32) && label.dim() == 1,
            "label must be (N) of int64 or int32");
  ctx.check(1 <= attrs.num_parts && attrs.num_parts <= attrs.num_sample &&
                attrs.num_sample <= attrs.num_rows,
            "num_sample ", attrs.num_sample, " must be between the ", attrs.num_parts,
            " parts and the ", attrs.num_rows, " classes");
  ctx.add_output_like(1);
  ctx.add_output({attrs.num_sample}, label.dtype);
}

// A rank that holds whole parts samples those and knows the positions of their labels; it gives 0
// for the others. This is a partial sum and, because positions are not negative, also a partial
// maximum. Only the layout of the weight is used.
void sbp_sample(SbpContext& ctx) {
  constexpr Sbp kB = sbp::broadcast;
  if (ctx.attrs<SampledParts>().held_alike(ctx.input(0).shape[0], ctx.output(1).shape[0],
                                           ctx.num_ranks())) {
    ctx.add_positional({sbp::split(0), kB}, {sbp::partial_sum, sbp::split(0)});
    ctx.add_positional({sbp::split(0), kB}, {sbp::partial_max, sbp::split(0)});
  }
  ctx.add({sbp::split(1), kB}, {kB, kB});
  for (const Sbp partial : {sbp::partial_sum, sbp::partial_max, sbp::partial_min})
    ctx.add({partial, kB}, {kB, kB});
}

int64_t parts_held(const TensorMeta& weight) {
  int64_t parts = 1;
  for (int64_t axis = 0; axis < weight.nd_sbp.size(); ++axis) {
    if (weight.nd_sbp[axis] == sbp::split(0)) parts *= weight.placement.shape()[axis];
  }
  return parts;
}

}  // namespace

const OpDef kPartialFcSample{.name = "distributed_partial_fc_sample",
                             .num_inputs = 2,
                             .num_outputs = 2,
                             .attrs = attrs_def<SampledParts>(),
                             .infer = infer_sample,
                             .sbp = sbp_sample,
                             .grad = not_differentiable,
                             .is_random = true};

void register_partial_fc(OpTable& table);

void register_partial_fc(OpTable& table) {
  table.add(kPartialFcSample);
}

}  // namespace ops

PartialFcSample distributed_partial_fc_sample(const TensorArg& weight, const TensorArg& label,
                                              int64_t num_sample, const PartialFcOptions& options) {
  const Site site = weight.site();
  const int64_t parts =
      options.num_parts == 0 ? ops::parts_held(weight->meta()) : options.num_parts;
  const ops::SampledParts attrs{.num_rows = weight->dim() == 0 ? 0 : weight->shape()[0],
                                .num_sample = num_sample,
                                .num_parts = parts};
  auto [mapped, sampled] =
      dispatch_multi<2>(ops::kPartialFcSample, {&weight.tensor(), &label.tensor()}, attrs, site);
  const ops::EmbeddingAttrs rows{attrs};
  Tensor sampled_weight = dispatch(ops::kEmbedding, {&sampled, &weight.tensor()}, rows, site);
  return {std::move(mapped), std::move(sampled), std::move(sampled_weight)};
}

}  // namespace flow
