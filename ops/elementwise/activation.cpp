#include "ops/elementwise/activation.h"

#include <type_traits>

#include "core/default_dtype.h"
#include "core/dispatch.h"
#include "ops/elementwise/activation_op.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/row_calls.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/named_errors.h"
#include "ops/promotion.h"
#include "ops/reduce/reduce.h"
#include "ops/sbp_rules.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace flow {

namespace ops {

namespace {

// ---- shapes and layouts

void infer_floating(InferContext& ctx) {
  ctx.check(is_floating(ctx.input(0).dtype), "needs a floating dtype; cast first");
  ctx.add_output_like(0);
}

void infer_grad(InferContext& ctx) {
  ctx.check(ctx.input(0).shape == ctx.input(1).shape && ctx.input(0).dtype == ctx.input(1).dtype,
            "shapes or dtypes differ; expand or cast one");
  ctx.add_output_like(0);
}

void infer_prelu(InferContext& ctx) {
  ctx.check(is_floating(ctx.input(0).dtype), "needs a floating dtype; cast first");
  ctx.check(ctx.input(0).dtype == ctx.input(1).dtype, "dtypes differ: x is ", ctx.input(0).dtype,
            ", weight ", ctx.input(1).dtype, "; cast one");
  ctx.add_output(broadcast_shapes(ctx.input(0).shape, ctx.input(1).shape, "prelu"),
                 ctx.input(0).dtype);
}

// f' may be negative, or may underflow to zero, which turns an infinite part into NaN.
void sbp_linear_in_dy(SbpContext& ctx) {
  elementwise_sbp(ctx);
  ctx.add({sbp::partial_sum, sbp::broadcast}, {sbp::partial_sum});
}

// dy times zero or a positive number keeps the order of its parts.
void sbp_ordered_in_dy(SbpContext& ctx) {
  elementwise_sbp(ctx);
  for (const Sbp partial : {sbp::partial_sum, sbp::partial_max, sbp::partial_min})
    ctx.add({partial, sbp::broadcast}, {partial});
}

// ---- gradients

struct NoAttrs {};

template <const OpDef* kOp, class Attrs>
Tensor slope_times(const Tensor& dy, const Tensor& x, const GradContext& ctx) {
  if constexpr (std::is_same_v<Attrs, NoAttrs>) {
    return dispatch(*kOp, {&dy, &x}, Site::here());
  } else {
    return dispatch(*kOp, {&dy, &x}, ctx.attrs<Attrs>(), Site::here());
  }
}

// dx = kOp(dy, x)
template <const OpDef* kOp, class Attrs>
void grad(GradContext& ctx) {
  if (ctx.dy().defined()) ctx.set(0, slope_times<kOp, Attrs>(ctx.dy(), ctx.input(0), ctx));
}

// As above, but with 1 / alpha for a float32 alpha, as in PyTorch, so that the gradients agree with
// PyTorch's to the last digits.
void grad_celu(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  auto attrs = ctx.attrs<ScaledEluAttrs>();
  attrs.rate = 1.0 / static_cast<double>(static_cast<float>(attrs.alpha));
  const Tensor x = ctx.input(0);
  ctx.set(0, dispatch(kScaledEluGrad, {&ctx.dy(), &x}, attrs, Site::here()));
}

// z = dy f'(x): ddy = dz f'(x), dx = dz dy f''(x); kRule gives dy f''(x), null for zero.
using SecondFn = Tensor (*)(const Tensor& dy, const Tensor& x, const GradContext& ctx);

template <const OpDef* kOp, class Attrs, SecondFn kRule>
void second_grad(GradContext& ctx) {
  const Tensor& dz = ctx.dy();
  if (!dz.defined()) return;
  const Tensor x = ctx.input(1);
  if (ctx.needs(0)) ctx.set(0, slope_times<kOp, Attrs>(dz, x, ctx));
  if constexpr (kRule != nullptr) {
    if (ctx.needs(1)) ctx.set(1, mul(dz, kRule(ctx.input(0), x, ctx)));
  }
}

// scale alpha rate^2 exp(rate x) below zero, 0 above
Tensor second_scaled_elu(const Tensor& dy, const Tensor& x, const GradContext& ctx) {
  const auto& a = ctx.attrs<ScaledEluAttrs>();
  const Tensor bent =
      mul(exp(mul(clamp(x, {.max = 0}), a.rate)), a.scale * a.alpha * a.rate * a.rate);
  return masked_fill(mul(dy, bent), gt(x, 0), 0);
}

// With t = tanh(log(1 + exp x)), s = sigmoid x: (1 - t^2) s (2 + x (1 - s - 2 t s))
Tensor second_mish(const Tensor& dy, const Tensor& x, const GradContext& /*ctx*/) {
  const Tensor t = tanh(softplus(x));
  const Tensor s = sigmoid(x);
  const Tensor inner = mul(x, 1 - mul(s, mul(t, 2) + 1)) + 2;
  return mul(dy, mul(mul(1 - square(t), s), inner));
}

// 1 / 3 between -3 and 3
Tensor second_hardswish(const Tensor& dy, const Tensor& x, const GradContext& /*ctx*/) {
  return masked_fill(mul(dy, 1.0 / 3), ge(abs(x), 3), 0);
}

// -2 sign(x) / (1 + |x|)^3
Tensor second_softsign(const Tensor& dy, const Tensor& x, const GradContext& /*ctx*/) {
  return div(mul(dy, mul(sign(x), -2)), pow(abs(x) + 1, 3));
}

// -s (1 - s) with s = sigmoid x
Tensor second_logsigmoid(const Tensor& dy, const Tensor& x, const GradContext& /*ctx*/) {
  const Tensor s = sigmoid(x);
  return mul(dy, mul(s, s - 1));
}

// dx = dy where x > 0, else weight dy; dweight = 0 where x > 0, else x dy
void grad_prelu(GradContext& ctx) {
  const Tensor& dy = ctx.dy();
  if (!dy.defined()) return;
  const Tensor x = ctx.input(0);
  const Tensor positive = gt(x, 0);
  if (ctx.needs(0)) {
    ctx.set(0, sum_to(where(positive, dy, mul(dy, ctx.input(1))), ctx.input_meta(0)->shape));
  }
  if (ctx.needs(1)) {
    ctx.set(1, sum_to(masked_fill(mul(dy, x), positive, 0), ctx.input_meta(1)->shape));
  }
}

// ---- the table

template <const OpDef* kSlope, class Attrs>
constexpr OpDef row(const char* name, SbpFn sbp) {
  OpDef op = {
      .name = name,
      .infer = infer_floating,
      .sbp = sbp,
      .grad = grad<kSlope, Attrs>,
      .saved_inputs = 1,
      .allows_in_place = true,
  };
  if constexpr (!std::is_same_v<Attrs, NoAttrs>) op.attrs = attrs_def<Attrs>();
  return op;
}

template <const OpDef* kOp, SecondFn kRule, class Attrs = NoAttrs>
constexpr OpDef grad_row(const char* name, SbpFn sbp) {
  OpDef op = {
      .name = name,
      .num_inputs = 2,
      .infer = infer_grad,
      .sbp = sbp,
      .grad = second_grad<kOp, Attrs, kRule>,
      .saved_inputs = kRule == nullptr ? 2U : 3U,
  };
  if constexpr (!std::is_same_v<Attrs, NoAttrs>) op.attrs = attrs_def<Attrs>();
  return op;
}

}  // namespace

const OpDef kCelu = [] {
  OpDef celu = row<&kScaledEluGrad, ScaledEluAttrs>("celu", kRises);
  celu.grad = grad_celu;
  return celu;
}();
const OpDef kSelu = row<&kScaledEluGrad, ScaledEluAttrs>("selu", kRises);
const OpDef kHardtanh = row<&kHardtanhGrad, HardtanhAttrs>("hardtanh", kRises);

const OpDef kPrelu = {
    .name = "prelu",
    .num_inputs = 2,
    .infer = infer_prelu,
    .sbp = elementwise_sbp,
    .grad = grad_prelu,
    .saved_inputs = 3,
    .allows_in_place = true,
    .autocast = AutocastRule::kLower,
};

const OpDef kScaledEluGrad = grad_row<&kScaledEluGrad, second_scaled_elu, ScaledEluAttrs>(
    "scaled_elu_grad", sbp_linear_in_dy);
const OpDef kMishGrad = grad_row<&kMishGrad, second_mish>("mish_grad", sbp_linear_in_dy);
const OpDef kHardswishGrad =
    grad_row<&kHardswishGrad, second_hardswish>("hardswish_grad", sbp_linear_in_dy);
const OpDef kHardsigmoidGrad =
    grad_row<&kHardsigmoidGrad, nullptr>("hardsigmoid_grad", sbp_ordered_in_dy);
const OpDef kHardtanhGrad =
    grad_row<&kHardtanhGrad, nullptr, HardtanhAttrs>("hardtanh_grad", sbp_ordered_in_dy);
const OpDef kSoftsignGrad =
    grad_row<&kSoftsignGrad, second_softsign>("softsign_grad", sbp_ordered_in_dy);
const OpDef kLogsigmoidGrad =
    grad_row<&kLogsigmoidGrad, second_logsigmoid>("logsigmoid_grad", sbp_linear_in_dy);

void register_activation(OpTable& table) {
  for (const OpDef* op :
       {&kCelu, &kSelu, &kHardtanh, &kPrelu, &kScaledEluGrad, &kMishGrad, &kHardswishGrad,
        &kHardsigmoidGrad, &kHardtanhGrad, &kSoftsignGrad, &kLogsigmoidGrad}) {
    table.add(*op);
  }
}

}  // namespace ops

// clang-format off
Tensor mish(const TensorArg& x) { return ops::run<ops::Mish>(x); }
Tensor hardswish(const TensorArg& x) { return ops::run<ops::Hardswish>(x); }
Tensor hardsigmoid(const TensorArg& x) { return ops::run<ops::Hardsigmoid>(x); }
Tensor softsign(const TensorArg& x) { return ops::run<ops::Softsign>(x); }
Tensor logsigmoid(const TensorArg& x) { return ops::run<ops::Logsigmoid>(x); }

// clang-format on

namespace {

// In full double precision: the solution for which normal inputs keep mean 0 and variance 1.
constexpr double kSeluAlpha = 1.6732632423543772;
constexpr double kSeluScale = 1.0507009873554805;

}  // namespace

Tensor celu(const TensorArg& x, const CeluOptions& options) {
  if (!(options.alpha < 0 || options.alpha > 0)) {
    throw InvalidArgument(str("[celu] alpha is ", options.alpha, "; give a number other than 0"),
                          x.site());
  }
  const ops::ScaledEluAttrs attrs{.alpha = options.alpha, .rate = 1 / options.alpha};
  return dispatch(ops::kCelu, {&x.tensor()}, attrs, x.site());
}

Tensor selu(const TensorArg& x) {
  const ops::ScaledEluAttrs attrs{.alpha = kSeluAlpha, .scale = kSeluScale};
  return dispatch(ops::kSelu, {&x.tensor()}, attrs, x.site());
}

Tensor hardtanh(const TensorArg& x, const HardtanhOptions& options) {
  if (!(options.min_val <= options.max_val)) {
    throw InvalidArgument(str("[hardtanh] min_val ", options.min_val, " is above max_val ",
                              options.max_val, "; swap them"),
                          x.site());
  }
  const ops::HardtanhAttrs attrs{options.min_val, options.max_val};
  return dispatch(ops::kHardtanh, {&x.tensor()}, attrs, x.site());
}

Tensor relu6(const TensorArg& x) {
  if (is_integral(x->dtype())) return clamp(x, {.min = 0, .max = 6});
  return ops::named("relu6", x.site(),
                    [&]() -> Tensor { return hardtanh(x, {.min_val = 0, .max_val = 6}); });
}

Tensor prelu(const TensorArg& x, const TensorArg& weight) {
  const int64_t slopes = weight->numel();
  const int64_t channels = x->dim() > 1 ? x->size(1) : 1;
  if (weight->dim() > 1 || (slopes != 1 && slopes != channels)) {
    throw InvalidArgument(
        str("[prelu] weight has shape ", weight->shape(), ", x has shape ", x->shape(),
            "; give one slope, or a vector with one for each channel (dim 1)"),
        x.site());
  }
  if (slopes == 1 && (weight->dim() == 0 || x->dim() > 0)) {
    return dispatch(ops::kPrelu, {&x.tensor(), &weight.tensor()}, x.site());
  }
  // The slopes along dim 1 of x; without dims if x has no dims.
  Shape aligned;
  for (int64_t i = 1; i < x->dim(); ++i)
    aligned.push_back(i == 1 ? slopes : 1);
  const Tensor by_channel = reshape(TensorArg(weight, x.site()), aligned);
  return dispatch(ops::kPrelu, {&x.tensor(), &by_channel}, x.site());
}

Tensor glu(const TensorArg& x, int64_t dim) {
  return ops::located(x.site(), [&]() -> Tensor {
    if (!is_floating(x->dtype())) {
      throw InvalidArgument(
          str("[glu] needs a floating dtype; received ", x->meta(), "; cast first"), x.site());
    }
    const int64_t size = x->shape()[normalize_dim(dim, x->dim(), "glu")];
    if (size % 2 != 0) {
      throw InvalidArgument(str("[glu] dim ", dim, " of a tensor of shape ", x->shape(),
                                " has size ", size, "; give an even size"),
                            x.site());
    }
    const Tensor value = narrow(x, dim, 0, size / 2);
    const Tensor gate = narrow(x, dim, size / 2, size / 2);
    return mul(TensorArg(value, x.site()), sigmoid(TensorArg(gate, x.site())));
  });
}

Tensor PointwiseMethods::prelu(const TensorArg& weight) const {
  return flow::prelu(TensorArg(self(), weight.site()), weight);
}

Tensor PointwiseMethods::selu(Site site) const {
  return flow::selu(TensorArg(self(), site));
}

Tensor PointwiseMethods::celu(Site site) const {
  return flow::celu(TensorArg(self(), site));
}

Tensor PointwiseMethods::celu(const CeluOptions& options, Site site) const {
  return flow::celu(TensorArg(self(), site), options);
}

Tensor PointwiseMethods::mish(Site site) const {
  return flow::mish(TensorArg(self(), site));
}

Tensor PointwiseMethods::hardswish(Site site) const {
  return flow::hardswish(TensorArg(self(), site));
}

Tensor PointwiseMethods::hardsigmoid(Site site) const {
  return flow::hardsigmoid(TensorArg(self(), site));
}

Tensor PointwiseMethods::relu6(Site site) const {
  return flow::relu6(TensorArg(self(), site));
}

Tensor PointwiseMethods::softsign(Site site) const {
  return flow::softsign(TensorArg(self(), site));
}

Tensor PointwiseMethods::logsigmoid(Site site) const {
  return flow::logsigmoid(TensorArg(self(), site));
}

Tensor PointwiseMethods::hardtanh(Site site) const {
  return flow::hardtanh(TensorArg(self(), site));
}

Tensor PointwiseMethods::hardtanh(const HardtanhOptions& options, Site site) const {
  return flow::hardtanh(TensorArg(self(), site), options);
}

Tensor PointwiseMethods::glu(int64_t dim, Site site) const {
  return flow::glu(TensorArg(self(), site), dim);
}

}  // namespace flow
