#include "ops/batch_norm.h"

#include "core/dispatch.h"
#include "ops/batch_norm_op.h"
#include "ops/binary.h"
#include "ops/concat.h"
#include "ops/slice.h"
#include "ops/unary.h"
#include "ops/view.h"

namespace flow {
namespace ops {
namespace {

constexpr int64_t kChannels = 1;

// The dtype of scales and shifts.
DType parameter_dtype(DType x) {
  return dtype_size(x) == 2 ? DType::kFloat32 : x;
}

void check_channels(const OpContext& ctx, int x) {
  ctx.check(is_floating(ctx.input(x).dtype), "takes a floating dtype; cast the input");
  ctx.check(ctx.input(x).dim() >= 2, "takes (N, C, ...); the input has no channels");
}

// ---- channel_affine

void infer_affine(InferContext& ctx) {
  check_channels(ctx, 0);
  for (int i = 1; i < ctx.num_inputs(); ++i) {
    ctx.check(!ctx.has_input(i) || (ctx.input(i).shape == Shape{ctx.input(0).shape[kChannels]} &&
                                    ctx.input(i).dtype == parameter_dtype(ctx.input(0).dtype)),
              "scale and shift must have one element for each channel and the dtype ",
              parameter_dtype(ctx.input(0).dtype));
  }
  ctx.add_output_like(0);
}

// Elementwise but for the channel; linear in (x, shift) and in (scale, shift), increasing in shift.
void sbp_affine(SbpContext& ctx) {
  using sbp::broadcast, sbp::partial_sum, sbp::split;
  const bool has_shift = ctx.has_input(2);
  const Sbp partial_shift = has_shift ? partial_sum : broadcast;
  for (int64_t i = 0; i < ctx.input(0).dim(); ++i) {
    const Sbp parameter = i == kChannels ? split(0) : broadcast;
    ctx.add({split(i), parameter, has_shift ? parameter : broadcast}, {split(i)});
  }
  ctx.add({partial_sum, broadcast, partial_shift}, {partial_sum});
  ctx.add({broadcast, partial_sum, partial_shift}, {partial_sum});
  if (!has_shift) return;
  for (const Sbp partial : {sbp::partial_max, sbp::partial_min})
    ctx.add({broadcast, broadcast, partial}, {partial});
}

// y = x s + t:  dx = dy s,  ds = sum(dy x),  dt = sum(dy)
void grad_affine(GradContext& ctx) {
  const Tensor& dy = ctx.dy();
  if (!dy.defined()) return;
  if (ctx.needs(0)) ctx.set(0, channel_affine(dy, ctx.input(1)));
  const bool needs_shift = ctx.input_meta(2) != nullptr && ctx.needs(2);
  if (!ctx.needs(1) && !needs_shift) return;
  const Tensor sums = channel_dot(dy, ctx.input(0));
  const DType dtype = parameter_dtype(ctx.input_meta(0)->dtype);
  if (ctx.needs(1)) ctx.set(1, sums.select(0, 0).to(dtype));
  if (needs_shift) ctx.set(2, sums.select(0, 1).to(dtype));
}

// ---- sums over a channel

void infer_sums(InferContext& ctx) {
  check_channels(ctx, 0);
  for (int i = 1; i < ctx.num_inputs(); ++i) {
    ctx.check(ctx.input(i).shape == ctx.input(0).shape && ctx.input(i).dtype == ctx.input(0).dtype,
              "operands must have one shape and dtype");
  }
  ctx.add_output(Shape{2, ctx.input(0).shape[kChannels]}, DType::kFloat64);
}

// Channels are independent, the rest is summed.
void sbp_sums(SbpContext& ctx) {
  for (int64_t i = 0; i < ctx.input(0).dim(); ++i) {
    ctx.add(std::vector<Sbp>(static_cast<size_t>(ctx.num_inputs()), sbp::split(i)),
            {i == kChannels ? sbp::split(1) : sbp::partial_sum});
  }
}

// Linear in the first operand.
void sbp_dot(SbpContext& ctx) {
  sbp_sums(ctx);
  ctx.add({sbp::partial_sum, sbp::broadcast}, {sbp::partial_sum});
}

// (p, q) upstream of (sum(a b), sum(a)):  da = b p + q,  db = a p
void grad_dot(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const Tensor upstream = ctx.dy().to(parameter_dtype(ctx.input_meta(0)->dtype));
  const Tensor p = upstream.select(0, 0);
  if (ctx.needs(0)) ctx.set(0, channel_affine(ctx.input(1), p, upstream.select(0, 1)));
  if (ctx.needs(1)) ctx.set(1, channel_affine(ctx.input(0), p));
}

// (p, q) upstream of (sum(x^2), sum(x)):  dx = 2 x p + q
void grad_squares(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const Tensor upstream = ctx.dy().to(parameter_dtype(ctx.input_meta(0)->dtype));
  ctx.set(0, channel_affine(ctx.input(0), mul(upstream.select(0, 0), 2), upstream.select(0, 1)));
}

// ---- moments

void check_sums(const OpContext& ctx, int sums) {
  const TensorMeta& meta = ctx.input(sums);
  ctx.check(meta.dim() == 2 && meta.shape[0] == 2 && meta.dtype == DType::kFloat64,
            "takes (2, C) float64 sums");
}

void infer_moments(InferContext& ctx) {
  check_sums(ctx, 0);
  ctx.add_output_like(0);
}

void sbp_moments(SbpContext& ctx) {
  ctx.add({sbp::split(1)}, {sbp::split(1)});
}

// mean = s / n, var = q / n - mean^2 with upstream (u, v):  dq = v / n,  ds = (u - 2 mean v) / n
void grad_moments(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const double scale = 1.0 / static_cast<double>(ctx.attrs<MomentsAttrs>().count);
  const Tensor upstream = mul(ctx.dy(), scale);
  const Tensor v = upstream.select(0, 1);
  const Tensor mean = mul(ctx.input(0).select(0, 1), scale);
  const Tensor ds = sub(upstream.select(0, 0), mul(mul(mean, v), 2));
  ctx.set(0, stack({v, ds}, 0));
}

// ---- running statistics

void infer_update(InferContext& ctx) {
  check_sums(ctx, 2);
  for (const int i : {0, 1}) {
    ctx.check(ctx.input(i).shape == Shape{ctx.input(2).shape[1]} && is_floating(ctx.input(i).dtype),
              "running statistics must be floating and have one element for each channel");
    ctx.add_output_like(i);
  }
}

void sbp_update(SbpContext& ctx) {
  ctx.add({sbp::split(0), sbp::split(0), sbp::split(1)}, {sbp::split(0), sbp::split(0)});
}

}  // namespace

const OpDef kChannelAffine{.name = "channel_affine",
                           .num_inputs = 3,
                           .infer = infer_affine,
                           .sbp = sbp_affine,
                           .grad = grad_affine,
                           .saved_inputs = 0b011};

const OpDef kChannelDot{.name = "channel_dot",
                        .num_inputs = 2,
                        .infer = infer_sums,
                        .sbp = sbp_dot,
                        .grad = grad_dot,
                        .saved_inputs = 0b11};

const OpDef kChannelSquares{.name = "channel_squares",
                            .infer = infer_sums,
                            .sbp = sbp_sums,
                            .grad = grad_squares,
                            .saved_inputs = 0b1};

const OpDef kChannelMoments{.name = "channel_moments",
                            .attrs = attrs_def<MomentsAttrs>(),
                            .infer = infer_moments,
                            .sbp = sbp_moments,
                            .grad = grad_moments,
                            .saved_inputs = 0b1};

const OpDef kUpdateRunningStats{.name = "update_running_stats",
                                .num_inputs = 3,
                                .num_outputs = 2,
                                .attrs = attrs_def<RunningStatsAttrs>(),
                                .infer = infer_update,
                                .sbp = sbp_update,
                                .grad = not_differentiable,
                                .mutates = 0b011};

Tensor channel_affine(const TensorArg& x, const Tensor& scale, const Tensor& shift) {
  return dispatch(kChannelAffine, {&x.tensor(), &scale, &shift}, x.site());
}

Tensor channel_dot(const TensorArg& a, const Tensor& b) {
  return dispatch(kChannelDot, {&a.tensor(), &b}, a.site());
}

void register_batch_norm(OpTable& table);

void register_batch_norm(OpTable& table) {
  table.add(kChannelAffine);
  table.add(kChannelDot);
  table.add(kChannelSquares);
  table.add(kChannelMoments);
  table.add(kUpdateRunningStats);
}

}  // namespace ops

namespace {

void check_statistics(const TensorArg& x, const Tensor& running_mean, const Tensor& running_var) {
  if (x->dim() < 2) {
    throw InvalidArgument(str("[batch_norm] takes (N, C, ...); received ", x->meta()));
  }
  for (const Tensor* statistic : {&running_mean, &running_var}) {
    if (statistic->defined() && !(statistic->shape() == Shape{x->size(1)})) {
      throw InvalidArgument(str("[batch_norm] running statistics must have shape (", x->size(1),
                                "), one element a channel; received ", statistic->meta()));
    }
  }
}

// Mean and biased variance (2, C) of x's channels; writes the running statistics.
Tensor batch_moments(const TensorArg& x, const Tensor& running_mean, const Tensor& running_var,
                     double momentum) {
  const int64_t count = x->numel() / std::max<int64_t>(x->size(1), 1);
  if (count < 2) {
    throw InvalidArgument(str("[batch_norm] training needs more than one value per channel; ",
                              "received ", x->meta(), "; use a larger batch or eval()"));
  }
  const Tensor sums = dispatch(ops::kChannelSquares, {&x.tensor()}, x.site());
  const Tensor moments =
      dispatch(ops::kChannelMoments, {&sums}, ops::MomentsAttrs{count}, x.site());
  if (running_mean.defined() && running_var.defined()) {
    const Tensor constant = moments.detach();
    const double n = static_cast<double>(count);
    dispatch_multi<2>(ops::kUpdateRunningStats, {&running_mean, &running_var, &constant},
                      ops::RunningStatsAttrs{momentum, n / (n - 1)}, x.site());
  }
  return moments;
}

}  // namespace

Tensor batch_norm(const TensorArg& x, const TensorArg& running_mean, const TensorArg& running_var,
                  const BatchNormOptions& options) {
  check_statistics(x, running_mean, running_var);
  if (running_mean->defined() != running_var->defined()) {
    throw InvalidArgument(
        "[batch_norm] only one of running_mean and running_var is defined; give both or none");
  }
  Tensor mean = running_mean.tensor();
  Tensor var = running_var.tensor();
  if (options.training || !mean.defined()) {
    const Tensor moments =
        batch_moments(x, running_mean, running_var, options.training ? options.momentum : 0.0);
    mean = moments.select(0, 0);
    var = moments.select(0, 1);
  }
  Tensor scale = rsqrt(add(var, options.eps));
  if (options.weight.defined()) scale = mul(scale, options.weight);
  Tensor shift = neg(mul(mean, scale));
  if (options.bias.defined()) shift = add(shift, options.bias);
  const DType dtype = dtype_size(x->dtype()) == 2 ? DType::kFloat32 : x->dtype();
  return ops::channel_affine(x, scale.to(dtype), shift.to(dtype));
}

}  // namespace flow
