#include "ops/fft/fft_op.h"

#include <cmath>

#include "core/dispatch.h"
#include "ops/sbp_rules.h"

namespace flow::ops {

namespace {

int64_t num_frequencies(const FftAttrs& attrs) {
  return attrs.points / 2 + 1;
}

void check_input(const OpContext& ctx, bool is_complex, int64_t expected_size) {
  const auto& attrs = ctx.attrs<FftAttrs>();
  const TensorMeta& x = ctx.input(0);
  ctx.check(x.dtype == DType::kFloat32 || x.dtype == DType::kFloat64,
            "takes float32 or float64; cast the input");
  if (is_complex) {
    ctx.check(x.dim() >= 2 && x.shape.back() == 2,
              "takes complex numbers as real tensors (…, 2) of at least two dims: real and "
              "imaginary parts; fft::complex makes them");
  }
  const int64_t num_dims = x.dim() - (is_complex ? 1 : 0);
  ctx.check(attrs.dim >= 0 && attrs.dim < num_dims, "dim ", attrs.dim, " is none of the ", num_dims,
            " dims of the input");
  ctx.check(attrs.points >= 1, "needs at least one point along dim ", attrs.dim, "; received ",
            attrs.points);
  ctx.check(x.shape[attrs.dim] == expected_size, "needs ", expected_size, " elements along dim ",
            attrs.dim, " for ", attrs.points, " points; received ", x.shape[attrs.dim]);
}

void infer_c2c(InferContext& ctx) {
  check_input(ctx, true, ctx.attrs<FftAttrs>().points);
  ctx.add_output_like(0);
}

void infer_r2c(InferContext& ctx) {
  const auto& attrs = ctx.attrs<FftAttrs>();
  check_input(ctx, false, attrs.points);
  Shape shape = ctx.input(0).shape;
  shape[attrs.dim] = num_frequencies(attrs);
  shape.push_back(2);
  ctx.add_output(shape, ctx.input(0).dtype);
}

void infer_c2r(InferContext& ctx) {
  const auto& attrs = ctx.attrs<FftAttrs>();
  check_input(ctx, true, num_frequencies(attrs));
  Shape shape = ctx.input(0).shape;
  shape[attrs.dim] = attrs.points;
  shape.erase(shape.size() - 1);
  ctx.add_output(shape, ctx.input(0).dtype);
}

// Lines along `dim` are independent, and the transform is linear.
template <bool kIsComplex>
void sbp(SbpContext& ctx) {
  const int64_t num_dims = ctx.input(0).dim() - (kIsComplex ? 1 : 0);
  for (int64_t i = 0; i < num_dims; ++i) {
    if (i != ctx.attrs<FftAttrs>().dim) ctx.add({sbp::split(i)}, {sbp::split(i)});
  }
  add_partials(ctx, kLinear);
}

// y = A x:  dx = A^T dy, where A^T has the other sign in the exponent. A frequency that stands for
// two counts twice in a real result, and its gradient therefore half.
template <const OpDef& kAdjoint>
void grad(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  FftAttrs attrs = ctx.attrs<FftAttrs>();
  attrs.inverse = !attrs.inverse;
  if (&kAdjoint == &kFftC2r) attrs.paired /= 2;
  if (&kAdjoint == &kFftR2c) attrs.paired *= 2;
  ctx.set(0, dispatch(kAdjoint, {&ctx.dy()}, attrs, Site::here()));
}

void infer_overlap(InferContext& ctx) {
  const DType dtype = ctx.input(0).dtype;
  ctx.check(dtype == DType::kFloat32 || dtype == DType::kFloat64,
            "takes float32 or float64; cast the input");
  ctx.add_output_like(0);
}

// dx = dy
void pass_grad(GradContext& ctx) {
  if (ctx.dy().defined()) ctx.set(0, ctx.dy());
}

Cost cost(const SbpContext& ctx) {
  const auto points = static_cast<double>(ctx.attrs<FftAttrs>().points);
  return {.flops = 5 * static_cast<double>(ctx.input(0).numel) * std::log2(points + 1)};
}

}  // namespace

const OpDef kFftC2c{.name = "fft_c2c",
                    .attrs = attrs_def<FftAttrs>(),
                    .infer = infer_c2c,
                    .sbp = sbp<true>,
                    .grad = grad<kFftC2c>,
                    .cost = cost,
                    .autocast = AutocastRule::kFloat32};

const OpDef kFftR2c{.name = "fft_r2c",
                    .attrs = attrs_def<FftAttrs>(),
                    .infer = infer_r2c,
                    .sbp = sbp<false>,
                    .grad = grad<kFftC2r>,
                    .cost = cost,
                    .autocast = AutocastRule::kFloat32};

const OpDef kFftC2r{.name = "fft_c2r",
                    .attrs = attrs_def<FftAttrs>(),
                    .infer = infer_c2r,
                    .sbp = sbp<true>,
                    .grad = grad<kFftR2c>,
                    .cost = cost,
                    .autocast = AutocastRule::kFloat32};

const OpDef kCheckedOverlap{.name = "checked_overlap",
                            .infer = infer_overlap,
                            .sbp = unary_sbp<kMinToMin>,
                            .grad = pass_grad};

void register_fft(OpTable& table);

void register_fft(OpTable& table) {
  table.add(kFftC2c);
  table.add(kFftR2c);
  table.add(kFftC2r);
  table.add(kCheckedOverlap);
}

}  // namespace flow::ops
