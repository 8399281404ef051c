// Fused gradients of activations: one pass over dy and what the forward op saved. Each is linear in
// its first input, and its gradient is written with public functions.
#include <numbers>
#include <type_traits>

#include "core/dispatch.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/unary_op.h"
#include "ops/elementwise/where.h"
#include "ops/sbp_rules.h"

namespace flow::ops {

namespace {

void infer_like_both(InferContext& ctx) {
  ctx.check(ctx.input(0).shape == ctx.input(1).shape && ctx.input(0).dtype == ctx.input(1).dtype,
            "shapes or dtypes differ; expand or cast one");
  ctx.add_output_like(0);
}

void sbp_linear_in_dy(SbpContext& ctx) {
  elementwise_sbp(ctx);
  ctx.add({sbp::partial_sum, sbp::broadcast}, {sbp::partial_sum});
}

// dy times a positive number keeps the order of its parts. (f' of other functions may underflow to
// zero, which turns an infinite part into NaN.)
void sbp_selects_dy(SbpContext& ctx) {
  sbp_linear_in_dy(ctx);
  const bool rises = &ctx.op() == &kReluGrad || ctx.attrs<LeakyReluAttrs>().negative_slope > 0;
  if (!rises) return;
  for (const Sbp partial : {sbp::partial_max, sbp::partial_min})
    ctx.add({partial, sbp::broadcast}, {partial});
}

// z = dy f'(s): ddy = dz f'(s), ds = dz dy f''(s); kRule gives dy f''(s), null for zero.
using SecondFn = Tensor (*)(const Tensor& dy, const Tensor& s, const GradContext& ctx);

struct NoAttrs {};

template <const OpDef* kOp, class Attrs, SecondFn kRule>
void grad(GradContext& ctx) {
  const Tensor& dz = ctx.dy();
  if (!dz.defined()) return;
  const Tensor s = ctx.input(1);
  if (ctx.needs(0)) {
    if constexpr (std::is_same_v<Attrs, NoAttrs>) {
      ctx.set(0, dispatch(*kOp, {&dz, &s}, Site::here()));
    } else {
      ctx.set(0, dispatch(*kOp, {&dz, &s}, ctx.attrs<Attrs>(), Site::here()));
    }
  }
  if constexpr (kRule != nullptr) {
    if (ctx.needs(1)) ctx.set(1, mul(dz, kRule(ctx.input(0), s, ctx)));
  }
}

// tanh' = 1 - y^2 of the output y
Tensor second_tanh(const Tensor& dy, const Tensor& y, const GradContext& /*ctx*/) {
  return mul(dy, mul(y, -2));
}

// sigmoid' = y (1 - y) of the output y
Tensor second_sigmoid(const Tensor& dy, const Tensor& y, const GradContext& /*ctx*/) {
  return mul(dy, 1 - mul(y, 2));
}

// gelu'' = exp(-x^2 / 2) / sqrt(2 pi) (2 - x^2)
Tensor second_gelu(const Tensor& dy, const Tensor& x, const GradContext& /*ctx*/) {
  const Tensor square_x = square(x);
  const Tensor density =
      mul(exp(mul(square_x, -0.5)), std::numbers::inv_sqrtpi / std::numbers::sqrt2);
  return mul(dy, mul(density, 2 - square_x));
}

// With t = tanh u, u = k (x + c x^3), k = sqrt(2 / pi):
// gelu_tanh'' = (1 - t^2) (u' + x (u'' / 2 - t u'^2))
Tensor second_gelu_tanh(const Tensor& dy, const Tensor& x, const GradContext& /*ctx*/) {
  constexpr double kCubic = 0.044715;
  constexpr double kScale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  const Tensor square_x = square(x);
  const Tensor t = tanh(mul(mul(x, kScale), mul(square_x, kCubic) + 1));
  const Tensor slope = mul(mul(square_x, 3 * kCubic) + 1, kScale);
  const Tensor bend = mul(x, 3 * kCubic * kScale);  // u'' / 2
  const Tensor inner = slope + mul(x, bend - mul(t, square(slope)));
  return mul(dy, mul(1 - square(t), inner));
}

// With s = sigmoid x: silu'' = s (1 - s) (2 + x (1 - 2 s))
Tensor second_silu(const Tensor& dy, const Tensor& x, const GradContext& /*ctx*/) {
  const Tensor s = sigmoid(x);
  const Tensor inner = mul(x, 1 - mul(s, 2)) + 2;
  return mul(dy, mul(mul(s, 1 - s), inner));
}

// elu'' = alpha exp x below zero, 0 above
Tensor second_elu(const Tensor& dy, const Tensor& x, const GradContext& ctx) {
  const Tensor bent = mul(exp(clamp(x, {.max = 0})), ctx.attrs<EluAttrs>().alpha);
  return masked_fill(mul(dy, bent), gt(x, 0), 0);
}

// With s = sigmoid(beta x): softplus'' = beta s (1 - s) below the threshold, 0 above
Tensor second_softplus(const Tensor& dy, const Tensor& x, const GradContext& ctx) {
  const auto& attrs = ctx.attrs<SoftplusAttrs>();
  const Tensor scaled = mul(x, attrs.beta);
  const Tensor s = sigmoid(scaled);
  const Tensor bent = mul(mul(s, 1 - s), attrs.beta);
  return masked_fill(mul(dy, bent), gt(scaled, attrs.threshold), 0);
}

template <const OpDef* kOp, SecondFn kRule, class Attrs = NoAttrs>
constexpr OpDef row(const char* name) {
  OpDef op = {
      .name = name,
      .num_inputs = 2,
      .infer = infer_like_both,
      .sbp = kRule == nullptr ? sbp_selects_dy : sbp_linear_in_dy,
      .grad = grad<kOp, Attrs, kRule>,
      .saved_inputs = kRule == nullptr ? 2U : 3U,
  };
  if constexpr (!std::is_same_v<Attrs, NoAttrs>) op.attrs = attrs_def<Attrs>();
  return op;
}

}  // namespace

const OpDef kReluGrad = row<&kReluGrad, nullptr>("relu_grad");
const OpDef kTanhGrad = row<&kTanhGrad, second_tanh>("tanh_grad");
const OpDef kSigmoidGrad = row<&kSigmoidGrad, second_sigmoid>("sigmoid_grad");
const OpDef kGeluGrad = row<&kGeluGrad, second_gelu>("gelu_grad");
const OpDef kGeluTanhGrad = row<&kGeluTanhGrad, second_gelu_tanh>("gelu_tanh_grad");
const OpDef kSiluGrad = row<&kSiluGrad, second_silu>("silu_grad");
const OpDef kLeakyReluGrad = row<&kLeakyReluGrad, nullptr, LeakyReluAttrs>("leaky_relu_grad");
const OpDef kEluGrad = row<&kEluGrad, second_elu, EluAttrs>("elu_grad");
const OpDef kSoftplusGrad = row<&kSoftplusGrad, second_softplus, SoftplusAttrs>("softplus_grad");

void register_unary_grad(OpTable& table) {
  for (const OpDef* op : {&kReluGrad, &kTanhGrad, &kSigmoidGrad, &kGeluGrad, &kGeluTanhGrad,
                          &kSiluGrad, &kLeakyReluGrad, &kEluGrad, &kSoftplusGrad}) {
    table.add(*op);
  }
}

}  // namespace flow::ops
