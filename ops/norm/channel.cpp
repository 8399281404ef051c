#include "core/dispatch.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/norm/channel_op.h"
#include "ops/shape/concat.h"
#include "ops/shape/view.h"

namespace flow {
namespace ops {

void check_channels(const OpContext& ctx, int x) {
  ctx.check(is_floating(ctx.input(x).dtype), "takes a floating dtype; cast the input");
  ctx.check(ctx.input(x).dim() >= 2, "takes (N, C, ...); the input has no channels");
}

namespace {

// ---- channel_affine

void infer_affine(InferContext& ctx) {
  check_channels(ctx, 0);
  for (int i = 1; i < ctx.num_inputs(); ++i) {
    ctx.check(!ctx.has_input(i) || (ctx.input(i).shape == Shape{ctx.input(0).shape[kChannels]} &&
                                    ctx.input(i).dtype == channel_dtype(ctx.input(0).dtype)),
              "scale and shift must have one element for each channel and the dtype ",
              channel_dtype(ctx.input(0).dtype));
  }
  ctx.add_output_like(0);
}

// The op is elementwise except for the channel. It is linear in (x, shift) and in (scale, shift),
// and increasing in shift.
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
  // The sums are rounded together: if the inputs are split, the sums are partial and reduced
  // before.
  const Tensor sums = channel_dot(dy, ctx.input(0)).to(channel_dtype(ctx.input_meta(0)->dtype));
  if (ctx.needs(1)) ctx.set(1, sums.select(0, 0));
  if (needs_shift) ctx.set(2, sums.select(0, 1));
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

// Channels are independent; the other dims are summed.
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
  const Tensor upstream = ctx.dy().to(channel_dtype(ctx.input_meta(0)->dtype));
  const Tensor p = upstream.select(0, 0);
  if (ctx.needs(0)) ctx.set(0, channel_affine(ctx.input(1), p, upstream.select(0, 1)));
  if (ctx.needs(1)) ctx.set(1, channel_affine(ctx.input(0), p));
}

// (p, q) upstream of (sum(x^2), sum(x)):  dx = 2 x p + q
void grad_squares(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const Tensor upstream = ctx.dy().to(channel_dtype(ctx.input_meta(0)->dtype));
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

int64_t elements_of_moments(const OpContext& ctx) {
  return ctx.attrs<MomentsAttrs>().count;
}

// mean = s / n, var = q / n - mean^2 with upstream (u, v):  dq = v / n,  ds = (u - 2 mean v) / n
void grad_moments(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const Tensor moments = ctx.output();
  ctx.set(0, dispatch(kChannelMomentsBackward, {&ctx.dy(), &moments}, ctx.attrs<MomentsAttrs>(),
                      Site::here()));
}

void infer_moments_backward(InferContext& ctx) {
  check_sums(ctx, 0);
  check_sums(ctx, 1);
  ctx.check(ctx.input(0).shape == ctx.input(1).shape, "operands must have one shape");
  ctx.add_output_like(0);
}

// Linear in the gradient.
void sbp_moments_backward(SbpContext& ctx) {
  ctx.add({sbp::split(1), sbp::split(1)}, {sbp::split(1)});
  ctx.add({sbp::partial_sum, sbp::broadcast}, {sbp::partial_sum});
}

// The map of (u, v) is its own adjoint; with upstream (a, b):  dmean = -2 v b / n
void grad_moments_backward(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const Tensor upstream = ctx.input(0), moments = ctx.input(1);
  const Tensor through = dispatch(kChannelMomentsBackward, {&ctx.dy(), &moments},
                                  ctx.attrs<MomentsAttrs>(), Site::here());
  if (ctx.needs(0)) ctx.set(0, through);
  if (!ctx.needs(1)) return;
  const Tensor dmean = mul(mul(upstream.select(0, 1), through.select(0, 0)), -2);
  ctx.set(1, stack({dmean, zeros_like(dmean)}, 0));
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
                        .saved_inputs = 0b11,
                        .micro_batch = {.makes_sums = true}};

const OpDef kChannelSquares{.name = "channel_squares",
                            .infer = infer_sums,
                            .sbp = sbp_sums,
                            .grad = grad_squares,
                            .saved_inputs = 0b1,
                            .micro_batch = {.makes_sums = true}};

const OpDef kChannelMoments{.name = "channel_moments",
                            .attrs = attrs_def<MomentsAttrs>(),
                            .infer = infer_moments,
                            .sbp = sbp_moments,
                            .grad = grad_moments,
                            .saved_outputs = 0b1,
                            .micro_batch = {.takes_sums = true,
                                            .scale_count = scale_count_of<MomentsAttrs>,
                                            .statistics = {"batch_norm", elements_of_moments}}};

const OpDef kChannelMomentsBackward{
    .name = "channel_moments_backward",
    .num_inputs = 2,
    .attrs = attrs_def<MomentsAttrs>(),
    .infer = infer_moments_backward,
    .sbp = sbp_moments_backward,
    .grad = grad_moments_backward,
    .saved_inputs = 0b11,
    .micro_batch = {.takes_sums = true, .scale_count = scale_count_of<MomentsAttrs>}};

Tensor channel_affine(const TensorArg& x, const Tensor& scale, const Tensor& shift) {
  return dispatch(kChannelAffine, {&x.tensor(), &scale, &shift}, x.site());
}

Tensor channel_dot(const TensorArg& a, const Tensor& b) {
  return dispatch(kChannelDot, {&a.tensor(), &b}, a.site());
}

void register_channel(OpTable& table);

void register_channel(OpTable& table) {
  table.add(kChannelAffine);
  table.add(kChannelDot);
  table.add(kChannelSquares);
  table.add(kChannelMoments);
  table.add(kChannelMomentsBackward);
}

}  // namespace ops
}  // namespace flow
