#include "core/dispatch.h"
#include "ops/elementwise/binary.h"
#include "ops/norm/channel_op.h"
#include "ops/norm/group_norm_op.h"
#include "ops/norm/norm.h"
#include "ops/norm/norm_op.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace flow::ops {

Shape grouped_shape(const Shape& x, int64_t num_groups) {
  return {x[0], num_groups, x.numel() / std::max<int64_t>(1, x[0] * num_groups)};
}

Tensor over_channels(const Tensor& parameter, int64_t dim) {
  Shape shape = Shape::filled(dim, 1);
  shape[kChannels] = parameter.numel();
  return reshape(parameter, shape);
}

namespace {

// x is input `x`; weight and bias, from input `first` on, are optional.
void check_inputs(const OpContext& ctx, int x, int first, int count) {
  const TensorMeta& meta = ctx.input(x);
  ctx.check(is_floating(meta.dtype), "takes a floating dtype; cast the input");
  ctx.check(meta.dim() > 2, "takes (N, C, ...) with dims after the channels");
  const int64_t group = ctx.attrs<GroupNormAttrs>().group_size;
  ctx.check(group > 0 && meta.shape[kChannels] % group == 0,
            "the channels do not divide into groups of ", group);
  for (int i = first; i < first + count; ++i) {
    if (!ctx.has_input(i)) continue;
    ctx.check(
        ctx.input(i).shape == Shape{meta.shape[kChannels]} && ctx.input(i).dtype == meta.dtype,
        "weight and bias must have one element for each channel and the input's dtype");
  }
}

void infer(InferContext& ctx) {
  check_inputs(ctx, 0, 1, 2);
  ctx.add_output_like(0);
}

void infer_backward(InferContext& ctx) {
  check_inputs(ctx, 1, 2, 1);
  ctx.check(ctx.input(0).shape == ctx.input(1).shape && ctx.input(0).dtype == ctx.input(1).dtype,
            "the gradient must have the input's shape and dtype");
  ctx.add_output_like(1);
  for (int i = 0; i < 2; ++i)
    ctx.add_output(Shape{ctx.input(1).shape[kChannels]}, ctx.input(1).dtype);
}

// True if each rank can hold whole groups.
bool groups_split(const SbpContext& ctx, int x) {
  const int64_t groups = ctx.input(x).shape[kChannels] / ctx.attrs<GroupNormAttrs>().group_size;
  return ctx.attrs<GroupNormAttrs>().group_size == 1 ||
         (ctx.num_ranks() > 0 && groups % ctx.num_ranks() == 0);
}

// Samples and groups are independent. The result is linear in weight and bias together and
// increases with the bias.
void sbp(SbpContext& ctx) {
  using sbp::broadcast, sbp::split;
  const auto parameter = [&](int i, Sbp value) { return ctx.has_input(i) ? value : broadcast; };
  ctx.add({split(0), broadcast, broadcast}, {split(0)});
  if (groups_split(ctx, 0))
    ctx.add({split(1), parameter(1, split(0)), parameter(2, split(0))}, {split(1)});
  if (ctx.has_input(2)) {
    for (const Sbp side : {sbp::partial_max, sbp::partial_min})
      ctx.add({broadcast, broadcast, side}, {side});
  }
  if (ctx.has_input(1))
    ctx.add({broadcast, sbp::partial_sum, parameter(2, sbp::partial_sum)}, {sbp::partial_sum});
}

// Samples and groups are independent, and samples are summed in the gradients of the parameters.
// All gradients are linear in dy. dx is linear in the weight; the other gradients do not depend on
// it.
void sbp_backward(SbpContext& ctx) {
  using sbp::broadcast, sbp::partial_sum, sbp::split;
  ctx.add({split(0), split(0), broadcast}, {split(0), partial_sum, partial_sum});
  if (groups_split(ctx, 1)) {
    const Sbp weight = ctx.has_input(2) ? split(0) : broadcast;
    ctx.add({split(1), split(1), weight}, {split(1), split(0), split(0)});
  }
  ctx.add({partial_sum, broadcast, broadcast}, {partial_sum, partial_sum, partial_sum});
  if (ctx.has_input(2))
    ctx.add({broadcast, broadcast, partial_sum}, {partial_sum, broadcast, broadcast});
}

Ints all_but_channels(int64_t dim) {
  std::vector<int64_t> dims;
  for (int64_t i = 0; i < dim; ++i) {
    if (i != kChannels) dims.push_back(i);
  }
  return Ints(std::move(dims));
}

// The gradients as functions of layer_norm, for second derivatives: with the normalised h,
// dx = layer_norm's gradient of dy weight,  dweight = sum(dy h),  dbias = sum(dy)
std::array<Tensor, 3> gradients_by_rows(const Tensor& dy, const Tensor& x, const Tensor& weight,
                                        const GroupNormAttrs& attrs) {
  const Shape rows = grouped_shape(x.shape(), x.size(kChannels) / attrs.group_size);
  const Tensor source = reshape(x, rows);
  const Tensor upstream =
      reshape(weight.defined() ? mul(dy, over_channels(weight, x.dim())) : dy, rows);
  const Tensor none;
  const NormAttrs row_attrs{1, attrs.eps};
  const auto dx =
      dispatch_multi<3>(kLayerNormBackward, {&upstream, &source, &none}, row_attrs, Site::here());
  const Tensor h = reshape(layer_norm(source, {rows[2]}, {.eps = attrs.eps}), x.shape());
  const Ints others = all_but_channels(x.dim());
  return {reshape(dx[0], x.shape()), sum(mul(dy, h), others), sum(dy, others)};
}

void grad(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const Tensor dy = ctx.dy(), x = ctx.input(0);
  const Tensor weight = ctx.input_meta(1) != nullptr ? ctx.input(1) : Tensor();
  const auto& attrs = ctx.attrs<GroupNormAttrs>();
  const auto gradients =
      thread_state().grad_enabled
          ? gradients_by_rows(dy, x, weight, attrs)
          : dispatch_multi<3>(kGroupNormBackward, {&dy, &x, &weight}, attrs, Site::here());
  for (int i = 0; i < 3; ++i) {
    if (ctx.input_meta(i) != nullptr && ctx.needs(i)) ctx.set(i, gradients[static_cast<size_t>(i)]);
  }
}

Cost cost(const SbpContext& ctx) {
  constexpr double kFlopsPerElement = 8;
  return {.flops = kFlopsPerElement * static_cast<double>(ctx.input(0).numel)};
}

}  // namespace

const OpDef kGroupNorm{.name = "group_norm",
                       .num_inputs = 3,
                       .attrs = attrs_def<GroupNormAttrs>(),
                       .infer = infer,
                       .sbp = sbp,
                       .grad = grad,
                       .cost = cost,
                       .saved_inputs = 0b011,
                       .autocast = AutocastRule::kFloat32};

const OpDef kGroupNormBackward{.name = "group_norm_backward",
                               .num_inputs = 3,
                               .num_outputs = 3,
                               .attrs = attrs_def<GroupNormAttrs>(),
                               .infer = infer_backward,
                               .sbp = sbp_backward,
                               .grad = not_differentiable,
                               .cost = cost};

void register_group_norm(OpTable& table);

void register_group_norm(OpTable& table) {
  table.add(kGroupNorm);
  table.add(kGroupNormBackward);
}

}  // namespace flow::ops
