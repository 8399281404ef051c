#include "ops/norm/batch_norm.h"

#include <algorithm>
#include <vector>

#include "core/dispatch.h"
#include "core/error.h"
#include "core/tensor_meta.h"
#include "ops/creation/creation.h"
#include "ops/creation/whole_like.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/unary.h"
#include "ops/norm/batch_norm_op.h"
#include "ops/norm/channel_op.h"
#include "ops/norm/running_statistics.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/concat.h"
#include "ops/shape/view.h"

namespace flow {
namespace ops {
namespace {

void check_parameter(const OpContext& ctx, int x, int parameter) {
  if (!ctx.has_input(parameter)) return;
  const DType dtype = channel_dtype(ctx.input(x).dtype);
  ctx.check(ctx.input(parameter).shape == Shape{ctx.input(x).shape[kChannels]} &&
                ctx.input(parameter).dtype == dtype,
            "weight and bias must be ", dtype, " and have one element for each of the ",
            ctx.input(x).shape[kChannels], " channels");
}

void check_moments(const OpContext& ctx, int moments, int64_t parts, int64_t channels) {
  const TensorMeta& meta = ctx.input(moments);
  ctx.check(meta.shape == Shape{2 * parts, channels} && meta.dtype == DType::kFloat64,
            "moments must be (", 2 * parts, ", ", channels, ") float64");
}

void infer_batch_norm(InferContext& ctx) {
  check_channels(ctx, 0);
  check_parameter(ctx, 0, 1);
  check_parameter(ctx, 0, 2);
  ctx.add_output_like(0);
  ctx.add_output(Shape{2 * ctx.attrs<BatchNormAttrs>().parts, ctx.input(0).shape[kChannels]},
                 DType::kFloat64);
}

// Returns true if each rank of the axis holds one of the parts.
bool has_part_a_rank(const SbpContext& ctx, int x) {
  const auto& attrs = ctx.attrs<BatchNormAttrs>();
  return attrs.parts > 1 && attrs.parts == ctx.num_ranks() &&
         attrs.samples == ctx.input(x).shape[0];
}

// Channels are independent; linear in weight and bias together, increasing in the bias.
void sbp_batch_norm(SbpContext& ctx) {
  using sbp::broadcast, sbp::partial_sum, sbp::split;
  const Sbp weight = ctx.has_input(1) ? split(0) : broadcast;
  const Sbp bias = ctx.has_input(2) ? split(0) : broadcast;
  ctx.add({split(kChannels), weight, bias}, {split(kChannels), split(1)});
  if (has_part_a_rank(ctx, 0)) ctx.add({split(0), broadcast, broadcast}, {split(0), split(0)});
  if (ctx.has_input(2)) {
    for (const Sbp partial : {sbp::partial_max, sbp::partial_min})
      ctx.add({broadcast, broadcast, partial}, {partial, broadcast});
  }
  if (!ctx.has_input(1)) return;
  ctx.add({broadcast, partial_sum, ctx.has_input(2) ? partial_sum : broadcast},
          {partial_sum, broadcast});
}

// A batch of its own has its own moments.
void sbp_own_batch(SbpContext& ctx) {
  using sbp::broadcast, sbp::split;
  ctx.add({split(0), broadcast, broadcast}, {split(0), broadcast});
}

int64_t elements_of_batch(const OpContext& ctx) {
  const Shape& x = ctx.input(0).shape;
  return x.numel() / std::max<int64_t>(x[kChannels], 1) / ctx.attrs<BatchNormAttrs>().parts;
}

void refuse_parts(const GradContext& ctx) {
  if (ctx.attrs<BatchNormAttrs>().parts == 1) return;
  throw Unsupported(
      "[batch_norm] statistics of each rank have no second derivatives; use those of the whole "
      "batch");
}

// With h = (x - mean) r, r = 1 / sqrt(var + eps), s = weight r and m the mean over a channel:
// dx = s (dy - m(dy) - h m(dy h)),  dweight = sum(dy h),  dbias = sum(dy); moments' upstream (u, v)
// adds (u + 2 v (x - mean)) / n to dx
void grad_batch_norm(GradContext& ctx) {
  const Tensor x = ctx.input(0);
  const Tensor moments = ctx.output(1);
  std::array<Tensor, 3> gradients;
  if (ctx.dy(0).defined()) {
    const Tensor weight = ctx.input_meta(1) != nullptr ? ctx.input(1) : Tensor();
    gradients = dispatch_multi<3>(kBatchNormBackward, {&ctx.dy(0), &x, &moments, &weight},
                                  ctx.attrs<BatchNormAttrs>(), Site::here());
  }
  if (ctx.dy(1).defined() && ctx.needs(0)) {
    refuse_parts(ctx);
    const double n = static_cast<double>(x.numel()) / static_cast<double>(x.size(kChannels));
    const Tensor upstream = div(ctx.dy(1), n);
    const Tensor slope = mul(upstream.select(0, 1), 2);
    const Tensor shift = sub(upstream.select(0, 0), mul(moments.select(0, 0), slope));
    const DType dtype = channel_dtype(x.dtype());
    const Tensor dx = channel_affine(x, slope.to(dtype), shift.to(dtype));
    gradients[0] = gradients[0].defined() ? add(gradients[0], dx) : dx;
  }
  for (int i = 0; i < 3; ++i) {
    const Tensor& gradient = gradients[static_cast<size_t>(i)];
    if (ctx.input_meta(i) != nullptr && ctx.needs(i) && gradient.defined()) {
      ctx.set(i, gradient);
    }
  }
}

void infer_backward(InferContext& ctx) {
  check_channels(ctx, 1);
  ctx.check(ctx.input(0).shape == ctx.input(1).shape && ctx.input(0).dtype == ctx.input(1).dtype,
            "the gradient must have the input's shape and dtype");
  const int64_t channels = ctx.input(1).shape[kChannels];
  check_moments(ctx, 2, ctx.attrs<BatchNormAttrs>().parts, channels);
  check_parameter(ctx, 1, 3);
  ctx.add_output_like(1);
  for (int i = 0; i < 2; ++i)
    ctx.add_output(Shape{channels}, channel_dtype(ctx.input(1).dtype));
}

// Channels are independent; all is linear in dy, and dx in the weight.
void sbp_backward(SbpContext& ctx) {
  using sbp::broadcast, sbp::partial_sum, sbp::split;
  ctx.add({split(kChannels), split(kChannels), split(1), ctx.has_input(3) ? split(0) : broadcast},
          {split(kChannels), split(0), split(0)});
  if (has_part_a_rank(ctx, 1)) {
    ctx.add({split(0), split(0), split(0), broadcast}, {split(0), partial_sum, partial_sum});
  }
  ctx.add({partial_sum, broadcast, broadcast, broadcast}, {partial_sum, partial_sum, partial_sum});
  if (!ctx.has_input(3)) return;
  ctx.add({broadcast, broadcast, broadcast, partial_sum}, {partial_sum, broadcast, broadcast});
}

// Gradients of the parameters are sums over all batches.
void sbp_own_batch_backward(SbpContext& ctx) {
  using sbp::broadcast, sbp::partial_sum, sbp::split;
  ctx.add({split(0), split(0), broadcast, broadcast}, {split(0), partial_sum, partial_sum});
}

// Sums over a channel, as rows of (C) float64.
struct Pair {
  Tensor product;
  Tensor plain;
};

Pair sums(const Tensor& a, const Tensor& b) {
  const Tensor both = channel_dot(a, b);
  return {both.select(0, 0), both.select(0, 1)};
}

// For upstream (u, p, q) of (dx, dweight, dbias), with b = m(u), d = m(u h), a = m(dy), c = m(dy h)
// and t = p dy - s (c u + d dy), what arrives at h:
//   d(dy) = s (u - b - h d) + p h + q,  dx = r t,  dmean = -r sum(t),
//   dvar = -r^3 / 2 (weight n (m(u dy) - a b - c d) + sum(t (x - mean))),
//   dweight = r n (m(u dy) - a b - c d)
void grad_backward(GradContext& ctx) {
  refuse_parts(ctx);
  const Tensor dy = ctx.input(0);
  const Tensor x = ctx.input(1);
  const Tensor mean = ctx.input(2).select(0, 0);
  const Tensor r = rsqrt(add(ctx.input(2).select(0, 1), ctx.attrs<BatchNormAttrs>().eps));
  const bool has_weight = ctx.input_meta(3) != nullptr;
  const DType wide = mean.dtype();
  const DType dtype = channel_dtype(x.dtype());
  const Tensor weight = has_weight ? ctx.input(3).to(wide) : ones_like(mean);
  const double n = static_cast<double>(x.numel()) / static_cast<double>(x.size(kChannels));
  const Tensor none = zeros_like(mean);
  const Tensor u = ctx.dy(0).defined() ? ctx.dy(0) : zeros_like(x);
  const Tensor p = ctx.dy(1).defined() ? ctx.dy(1).to(wide) : none;
  const Tensor q = ctx.dy(2).defined() ? ctx.dy(2).to(wide) : none;
  const Pair dy_x = sums(dy, x);
  const Pair u_x = sums(u, x);
  const Tensor s = mul(weight, r);
  const Tensor a = div(dy_x.plain, n);
  const Tensor b = div(u_x.plain, n);
  const Tensor c = mul(sub(div(dy_x.product, n), mul(a, mean)), r);
  const Tensor d = mul(sub(div(u_x.product, n), mul(b, mean)), r);
  if (ctx.needs(0)) {
    const Tensor slope = mul(sub(p, mul(s, d)), r);
    const Tensor shift = sub(sub(q, mul(s, b)), mul(slope, mean));
    ctx.set(0, add(channel_affine(u, s.to(dtype), shift.to(dtype)),
                   channel_affine(x, slope.to(dtype))));
  }
  if (!ctx.needs(1) && !ctx.needs(2) && !(has_weight && ctx.needs(3))) return;
  const Tensor bracket = mul(sub(sub(div(sums(u, dy).product, n), mul(a, b)), mul(c, d)), n);
  if (has_weight && ctx.needs(3)) ctx.set(3, mul(r, bracket).to(dtype));
  const Tensor by_u = neg(mul(s, c));
  const Tensor by_dy = sub(p, mul(s, d));
  if (ctx.needs(1)) {
    ctx.set(1, add(channel_affine(u, mul(r, by_u).to(dtype)),
                   channel_affine(dy, mul(r, by_dy).to(dtype))));
  }
  if (ctx.needs(2)) {
    const Tensor dmean = neg(mul(r, mul(add(mul(by_u, b), mul(by_dy, a)), n)));
    // sum(u (x - mean)) = n d / r, as h = (x - mean) r.
    const Tensor through_h = mul(div(add(mul(by_u, d), mul(by_dy, c)), r), n);
    const Tensor dvar = mul(mul(mul(r, square(r)), add(mul(weight, bracket), through_h)), -0.5);
    ctx.set(2, stack({dmean, dvar}, 0));
  }
}

void infer_update(InferContext& ctx) {
  const int64_t channels = ctx.input(0).dim() == 1 ? ctx.input(0).shape[0] : 0;
  check_moments(ctx, 2, 1, channels);
  for (const int i : {0, 1}) {
    ctx.check(ctx.input(i).shape == Shape{channels} && is_floating(ctx.input(i).dtype),
              "running statistics must be floating and have one element for each channel");
    ctx.add_output_like(i);
  }
}

void sbp_update(SbpContext& ctx) {
  ctx.add({sbp::split(0), sbp::split(0), sbp::split(1)}, {sbp::split(0), sbp::split(0)});
}

void infer_count(InferContext& ctx) {
  ctx.check(ctx.input(0).dtype == DType::kInt64 && ctx.input(0).shape.empty(),
            "the number of batches must be an int64 scalar");
  ctx.add_output_like(0);
}

// Increasing.
void sbp_count(SbpContext& ctx) {
  for (const Sbp partial : {sbp::partial_max, sbp::partial_min})
    ctx.add({partial}, {partial});
}

}  // namespace

const OpDef kBatchNorm{.name = "batch_norm",
                       .num_inputs = 3,
                       .num_outputs = 2,
                       .attrs = attrs_def<BatchNormAttrs>(),
                       .infer = infer_batch_norm,
                       .sbp = sbp_batch_norm,
                       .grad = grad_batch_norm,
                       .saved_inputs = 0b011,
                       .saved_outputs = 0b10,
                       .micro_batch = {.own_batch_sbp = sbp_own_batch,
                                       .statistics = {"batch_norm", elements_of_batch}}};

const OpDef kBatchNormBackward{.name = "batch_norm_backward",
                               .num_inputs = 4,
                               .num_outputs = 3,
                               .attrs = attrs_def<BatchNormAttrs>(),
                               .infer = infer_backward,
                               .sbp = sbp_backward,
                               .grad = grad_backward,
                               .saved_inputs = 0b1111,
                               .micro_batch = {.own_batch_sbp = sbp_own_batch_backward}};

const OpDef kUpdateRunningStats{
    .name = "update_running_stats",
    .num_inputs = 3,
    .num_outputs = 2,
    .attrs = attrs_def<RunningStatsAttrs>(),
    .infer = infer_update,
    .sbp = sbp_update,
    .grad = not_differentiable,
    .mutates = 0b011,
    .micro_batch = {.writes_in_turn = true, .scale_count = scale_count_of<RunningStatsAttrs>}};

const OpDef kCountBatch{.name = "count_batch",
                        .infer = infer_count,
                        .sbp = sbp_count,
                        .grad = not_differentiable,
                        .mutates = 0b1,
                        .micro_batch = {.writes_in_turn = true}};

void register_batch_norm(OpTable& table);

void register_batch_norm(OpTable& table) {
  table.add(kBatchNorm);
  table.add(kBatchNormBackward);
  table.add(kUpdateRunningStats);
  table.add(kCountBatch);
}

}  // namespace ops

namespace {

// The operands of the call, with its parameters in the dtype that the kernels need.
struct BatchNormCall {
  const TensorArg& x;
  Tensor weight;
  Tensor bias;
  double eps;
  int64_t parts;  // each normalised by its own statistics
};

// The number of ranks among which the samples are split.
int64_t parts_of(const TensorArg& x, BatchStats stats) {
  if (stats == BatchStats::kLogical || !x->is_global()) return 1;
  int64_t parts = 1;
  for (int64_t axis = 0; axis < x->placement().num_axes(); ++axis) {
    if (!(x->sbp()[axis] == sbp::split(0))) continue;
    if (parts > 1) {
      throw Unsupported(str("[batch_norm] statistics of each rank need samples that are split "
                            "along one placement axis; received ",
                            x->meta(), "; use the statistics of the whole batch"),
                        x.site());
    }
    parts = x->placement().shape()[axis];
  }
  return parts;
}

// Normalises by given statistics (C).
Tensor normalise(const BatchNormCall& call, const Tensor& mean, const Tensor& var) {
  Tensor scale = rsqrt(add(var, call.eps));
  if (call.weight.defined()) scale = mul(scale, call.weight);
  Tensor shift = neg(mul(mean, scale));
  if (call.bias.defined()) shift = add(shift, call.bias);
  const DType dtype = ops::channel_dtype(call.x->dtype());
  return ops::channel_affine(call.x, scale.to(dtype), shift.to(dtype));
}

struct Normalised {
  Tensor y;
  Tensor moments;
};

// The elements of a channel in the smallest part of the batch that has samples.
int64_t least_count(const TensorArg& x, int64_t parts) {
  if (x->numel() == 0) return 0;
  const int64_t samples = x->size(0);
  return x->numel() / x->size(1) / samples * std::max<int64_t>(samples / parts, 1);
}

// The factor that makes the variance of `count` elements unbiased.
double unbiasing(int64_t count) {
  return static_cast<double>(count) / static_cast<double>(count - 1);
}

// The mean of the moments (parts, 2, C) over the parts that have samples. The variances of parts
// with more elements than `count` are scaled so that unbiasing(count) makes them unbiased too.
Tensor mean_over_parts(const TensorArg& moments, const TensorArg& x, int64_t count) {
  const int64_t parts = moments->size(0);
  const int64_t samples = x->size(0);
  if (samples % parts == 0) return mean(moments, 0);
  const int64_t positions = x->numel() / x->size(1) / samples;
  const auto filled = static_cast<double>(std::min(samples, parts));
  std::vector<double> weights;
  for (int64_t p = 0; p < parts; ++p) {
    const int64_t size = balanced_part(samples, parts, p).size * positions;
    weights.push_back(size == 0 ? 0 : 1 / filled);
    weights.push_back(size == 0 ? 0 : unbiasing(size) / unbiasing(count) / filled);
  }
  const Site site = moments.site();
  const Tensor shares = tensor(weights, {parts, 2, 1}, ops::whole_like(moments), site);
  return sum({mul(moments, {shares, site}), site}, 0);
}

// Of the logical batch, from sums over all ranks.
Tensor moments_of_all(const TensorArg& x, int64_t count) {
  const Tensor sums = dispatch(ops::kChannelSquares, {&x.tensor()}, x.site());
  return dispatch(ops::kChannelMoments, {&sums}, ops::MomentsAttrs{count}, x.site());
}

// The same for float64, whose squares have no digits left for a small variance of large numbers:
// normalises the distances to the mean.
Normalised normalise_distances(const BatchNormCall& call, int64_t count) {
  const Site site = call.x.site();
  const Tensor center = moments_of_all({call.x->detach(), site}, count).select(0, 0);
  const Tensor distances = ops::channel_affine(call.x, ones_like(center), neg(center));
  const TensorArg x(distances, site);
  const Tensor moments = moments_of_all(x, count);
  const Tensor mean = moments.select(0, 0);
  const Tensor var = moments.select(0, 1);
  const Tensor y = normalise({x, call.weight, call.bias, call.eps, call.parts}, mean, var);
  return {y, stack({add(mean, center), var}, 0)};
}

// Normalises by the statistics of the (logical) batch, or of its parts, the smallest of which has
// `count` elements per channel.
Normalised normalise_by_batch(const BatchNormCall& call, int64_t count) {
  const TensorArg& x = call.x;
  if (!x->is_global() || call.parts > 1) {
    const ops::BatchNormAttrs attrs{call.eps, call.parts, call.parts > 1 ? x->size(0) : 0};
    const auto results = dispatch_multi<2>(ops::kBatchNorm, {&x.tensor(), &call.weight, &call.bias},
                                           attrs, x.site());
    if (call.parts == 1) return {results[0], results[1]};
    const Tensor moments = reshape(results[1].detach(), {call.parts, 2, x->size(1)});
    return {results[0], mean_over_parts({moments, x.site()}, x, count)};
  }
  if (x->dtype() == DType::kFloat64) return normalise_distances(call, count);
  const Tensor moments = moments_of_all(x, count);
  return {normalise(call, moments.select(0, 0), moments.select(0, 1)), moments};
}

// Of statistics that are given, broadcasting would accept other shapes.
void check_parameters(const TensorArg& x, const BatchNormOptions& options) {
  for (const Tensor* parameter : {&options.weight, &options.bias}) {
    if (parameter->defined() && !(parameter->shape() == Shape{x->size(1)})) {
      throw InvalidArgument(str("[batch_norm] weight and bias must have shape (", x->size(1),
                                ",), one element for each channel; received ", parameter->meta()),
                            x.site());
    }
  }
}

Tensor parameter_of(const Tensor& parameter, DType x) {
  return parameter.defined() ? parameter.to(ops::channel_dtype(x)) : parameter;
}

// One op writes both and keeps their layouts, so the layouts have to be equal.
void update_statistics(const Tensor& running_mean, const Tensor& running_var, const Tensor& moments,
                       const ops::RunningStatsAttrs& attrs, Site site) {
  const auto update = [&](const Tensor& var) {
    dispatch_multi<2>(ops::kUpdateRunningStats, {&running_mean, &var, &moments}, attrs, site);
  };
  const bool lie_alike = !running_mean.is_global() || !running_var.is_global() ||
                         running_mean.placement() != running_var.placement() ||
                         running_mean.sbp() == running_var.sbp();
  if (lie_alike) return update(running_var);
  const Tensor var = empty_like(running_mean, {.dtype = running_var.dtype()});
  var.copy_(running_var);
  update(var);
  running_var.copy_(var);
}

}  // namespace

Tensor batch_norm(const TensorArg& x, const TensorArg& running_mean, const TensorArg& running_var,
                  const BatchNormOptions& options) {
  ops::check_statistics("batch_norm", x, running_mean, running_var);
  check_parameters(x, options);
  if (!(options.eps >= 0)) {
    throw InvalidArgument(
        str("[batch_norm] eps must be at least 0; received ", options.eps, " for ", x->meta()),
        x.site());
  }
  const BatchNormCall call{x, parameter_of(options.weight, x->dtype()),
                           parameter_of(options.bias, x->dtype()), options.eps,
                           options.training ? parts_of(x, options.stats) : 1};
  if (!options.training && running_mean.defined()) {
    return normalise(call, running_mean, running_var);
  }
  if (!options.training) {
    throw InvalidArgument(
        str("[batch_norm] evaluation needs running_mean and running_var; received ", x->meta(),
            " alone; give them, or training = true"),
        x.site());
  }
  if (!(options.eps > 0)) {
    throw InvalidArgument(
        str("[batch_norm] training needs eps > 0; received ", options.eps, " for ", x->meta()),
        x.site());
  }
  const int64_t count = least_count(x, call.parts);
  if (count < 2) {
    throw InvalidArgument(
        str("[batch_norm] training needs more than one value per channel; ", "received ", x->meta(),
            call.parts > 1 ? " for the statistics of each rank" : "",
            "; use a larger batch or eval()"),
        x.site());
  }
  const Normalised result = normalise_by_batch(call, count);
  if (running_mean.defined()) {
    const Tensor constant = result.moments.detach();
    update_statistics(running_mean, running_var, constant, {options.momentum, count}, x.site());
  }
  return result.y;
}

void count_batch_(const TensorArg& num_batches) {
  dispatch(ops::kCountBatch, {&num_batches.tensor()}, num_batches.site());
}

}  // namespace flow
