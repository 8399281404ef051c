#include "ops/elementwise/unary.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <numbers>

#include "core/default_dtype.h"
#include "core/dispatch.h"
#include "ops/autocast.h"
#include "ops/creation/copy.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/unary_op.h"
#include "ops/elementwise/where.h"
#include "ops/sbp_rules.h"

namespace flow {

namespace ops {

namespace {

// ---- shapes and dtypes

void infer_any(InferContext& ctx) {
  ctx.add_output_like(0);
}

void infer_numbers(InferContext& ctx) {
  ctx.check(ctx.input(0).dtype != DType::kBool, "is not defined for bool; use logical_not or cast");
  ctx.add_output_like(0);
}

void infer_floating(InferContext& ctx) {
  ctx.check(is_floating(ctx.input(0).dtype), "needs a floating dtype; cast first");
  ctx.add_output_like(0);
}

void infer_predicate(InferContext& ctx) {
  ctx.add_output(ctx.input(0).shape, DType::kBool);
}

// ---- layouts

void sbp_leaky_relu(SbpContext& ctx) {
  const double slope = ctx.attrs<LeakyReluAttrs>().negative_slope;
  elementwise_sbp(ctx);
  add_partials(ctx, slope >= 0 ? kIncreasing : kNoPartials);
}

void sbp_elu(SbpContext& ctx) {
  elementwise_sbp(ctx);
  add_partials(ctx, ctx.attrs<EluAttrs>().alpha >= 0 ? kIncreasing : kNoPartials);
}

// The step down to x at the threshold is below the rounding of float32 when it comes late.
void sbp_softplus(SbpContext& ctx) {
  elementwise_sbp(ctx);
  add_partials(ctx, ctx.attrs<SoftplusAttrs>().threshold >= 20 ? kIncreasing : kNoPartials);
}

// The maximum and the minimum of parts are NaN where a part is.
void sbp_isnan(SbpContext& ctx) {
  elementwise_sbp(ctx);
  for (const Sbp partial : {sbp::partial_max, sbp::partial_min})
    ctx.add({partial}, {sbp::partial_max});
}

// On bools "not" turns the order; of numbers, zero lies in the middle.
void sbp_logical_not(SbpContext& ctx) {
  elementwise_sbp(ctx);
  add_partials(ctx, ctx.input(0).dtype == DType::kBool ? kDecreasing : kNoPartials);
}

// ---- gradients

// dx = kRule(dy, ctx), zero when dy is.
template <Tensor (*kRule)(const Tensor& dy, const GradContext& ctx)>
void grad(GradContext& ctx) {
  if (ctx.dy().defined()) ctx.set(0, kRule(ctx.dy(), ctx));
}

// A step function: its derivative is zero where it has one.
void grad_zero(GradContext& /*ctx*/) {}

// dx = kOp(dy, y)
template <const OpDef* kOp>
Tensor of_output(const Tensor& dy, const GradContext& ctx) {
  const Tensor y = ctx.output();
  return dispatch(*kOp, {&dy, &y}, Site::here());
}

// dx = kOp(dy, x)
template <const OpDef* kOp>
Tensor of_input(const Tensor& dy, const GradContext& ctx) {
  const Tensor x = ctx.input(0);
  return dispatch(*kOp, {&dy, &x}, Site::here());
}

// dx = kOp(dy, x) with the attrs of the forward op
template <const OpDef* kOp, class Attrs>
Tensor of_input_with(const Tensor& dy, const GradContext& ctx) {
  const Tensor x = ctx.input(0);
  return dispatch(*kOp, {&dy, &x}, ctx.attrs<Attrs>(), Site::here());
}

// dx = -dy
Tensor dx_neg(const Tensor& dy, const GradContext& /*ctx*/) {
  return neg(dy);
}

// dx = dy sign(x)
Tensor dx_abs(const Tensor& dy, const GradContext& ctx) {
  return mul(dy, sign(ctx.input(0)));
}

// dx = 2 dy x
Tensor dx_square(const Tensor& dy, const GradContext& ctx) {
  return mul(dy, mul(ctx.input(0), 2));
}

// dx = dy y
Tensor dx_exp(const Tensor& dy, const GradContext& ctx) {
  return mul(dy, ctx.output());
}

// dx = dy
Tensor dx_frac(const Tensor& dy, const GradContext& /*ctx*/) {
  return dy;
}

// dx = dy y log 2
Tensor dx_exp2(const Tensor& dy, const GradContext& ctx) {
  return mul(mul(dy, ctx.output()), std::numbers::ln2);
}

// dx = dy (y + 1)
Tensor dx_expm1(const Tensor& dy, const GradContext& ctx) {
  return mul(dy, add(ctx.output(), 1));
}

// dx = dy / x
Tensor dx_log(const Tensor& dy, const GradContext& ctx) {
  return div(dy, ctx.input(0));
}

// dx = dy / (x log 2)
Tensor dx_log2(const Tensor& dy, const GradContext& ctx) {
  return div(dy, mul(ctx.input(0), std::numbers::ln2));
}

// dx = dy / (x log 10)
Tensor dx_log10(const Tensor& dy, const GradContext& ctx) {
  return div(dy, mul(ctx.input(0), std::numbers::ln10));
}

// dx = dy / (1 + x)
Tensor dx_log1p(const Tensor& dy, const GradContext& ctx) {
  return div(dy, add(ctx.input(0), 1));
}

// dx = dy / (2 y)
Tensor dx_sqrt(const Tensor& dy, const GradContext& ctx) {
  return div(dy, mul(ctx.output(), 2));
}

// dx = -dy y^3 / 2
Tensor dx_rsqrt(const Tensor& dy, const GradContext& ctx) {
  return mul(mul(dy, -0.5), pow(ctx.output(), 3));
}

// dx = -dy y^2
Tensor dx_reciprocal(const Tensor& dy, const GradContext& ctx) {
  return neg(mul(dy, square(ctx.output())));
}

// dx = dy cos x
Tensor dx_sin(const Tensor& dy, const GradContext& ctx) {
  return mul(dy, cos(ctx.input(0)));
}

// dx = -dy sin x
Tensor dx_cos(const Tensor& dy, const GradContext& ctx) {
  return neg(mul(dy, sin(ctx.input(0))));
}

// dx = dy 2/sqrt(pi) exp(-x^2)
Tensor dx_erf(const Tensor& dy, const GradContext& ctx) {
  return mul(mul(dy, 2 * std::numbers::inv_sqrtpi), exp(neg(square(ctx.input(0)))));
}

// dx = -dy 2/sqrt(pi) exp(-x^2)
Tensor dx_erfc(const Tensor& dy, const GradContext& ctx) {
  return neg(dx_erf(dy, ctx));
}

// dx = dy (pi x cos(pi x) - sin(pi x)) / (pi x^2), 0 for 0
Tensor dx_sinc(const Tensor& dy, const GradContext& ctx) {
  const Tensor x = ctx.input(0);
  const Tensor angle = mul(x, std::numbers::pi);
  const Tensor slope = div(sub(mul(angle, cos(angle)), sin(angle)), mul(x, angle));
  return masked_fill(mul(dy, slope), eq(x, 0), 0);
}

// ---- the table

// What a gradient reads.
enum Reads : uint32_t { kNothing = 0, kX = 1, kY = 2 };

constexpr OpDef row(const char* name, InferFn infer, SbpFn sbp, GradFn grad,
                    Reads reads = kNothing) {
  return {
      .name = name,
      .infer = infer,
      .sbp = sbp,
      .grad = grad,
      .saved_inputs = reads == kX ? 1U : 0U,
      .saved_outputs = reads == kY ? 1U : 0U,
      .allows_in_place = true,
  };
}

template <class Attrs>
constexpr OpDef row_with(const char* name, SbpFn sbp, GradFn grad) {
  OpDef op = row(name, infer_floating, sbp, grad, kX);
  op.attrs = attrs_def<Attrs>();
  return op;
}

constexpr OpDef predicate(const char* name, SbpFn sbp) {
  return {
      .name = name,
      .infer = infer_predicate,
      .sbp = sbp,
      .grad = not_differentiable,
  };
}

constexpr SbpFn kRises = unary_sbp<kIncreasing>;

}  // namespace

const OpDef kNeg = row("neg", infer_numbers, arithmetic_sbp<kLinear | kDecreasing>, grad<dx_neg>);
const OpDef kAbs = row("abs", infer_any, elementwise_sbp, grad<dx_abs>, kX);
const OpDef kSign = row("sign", infer_any, kRises, grad_zero);
const OpDef kSquare = row("square", infer_any, elementwise_sbp, grad<dx_square>, kX);
const OpDef kFloor = row("floor", infer_numbers, kRises, grad_zero);
const OpDef kCeil = row("ceil", infer_numbers, kRises, grad_zero);
const OpDef kRound = row("round", infer_numbers, kRises, grad_zero);
const OpDef kTrunc = row("trunc", infer_numbers, kRises, grad_zero);
const OpDef kFrac = row("frac", infer_floating, elementwise_sbp, grad<dx_frac>);

const OpDef kExp = in_float32(row("exp", infer_floating, kRises, grad<dx_exp>, kY));
const OpDef kExp2 = row("exp2", infer_floating, kRises, grad<dx_exp2>, kY);
const OpDef kExpm1 = in_float32(row("expm1", infer_floating, kRises, grad<dx_expm1>, kY));
const OpDef kLog = in_float32(row("log", infer_floating, unary_sbp<kMinToMin>, grad<dx_log>, kX));
const OpDef kLog2 =
    in_float32(row("log2", infer_floating, unary_sbp<kMinToMin>, grad<dx_log2>, kX));
const OpDef kLog10 =
    in_float32(row("log10", infer_floating, unary_sbp<kMinToMin>, grad<dx_log10>, kX));
const OpDef kLog1p =
    in_float32(row("log1p", infer_floating, unary_sbp<kMinToMin>, grad<dx_log1p>, kX));
const OpDef kSqrt = row("sqrt", infer_floating, unary_sbp<kMinToMin>, grad<dx_sqrt>, kY);
const OpDef kRsqrt =
    in_float32(row("rsqrt", infer_floating, unary_sbp<kMinToMax>, grad<dx_rsqrt>, kY));
const OpDef kReciprocal =
    in_float32(row("reciprocal", infer_floating, elementwise_sbp, grad<dx_reciprocal>, kY));
const OpDef kSin = row("sin", infer_floating, elementwise_sbp, grad<dx_sin>, kX);
const OpDef kCos = row("cos", infer_floating, elementwise_sbp, grad<dx_cos>, kX);
const OpDef kTanh = row("tanh", infer_floating, kRises, grad<of_output<&kTanhGrad>>, kY);
const OpDef kErf = row("erf", infer_floating, kRises, grad<dx_erf>, kX);
const OpDef kErfc = row("erfc", infer_floating, unary_sbp<kDecreasing>, grad<dx_erfc>, kX);
const OpDef kSinc = row("sinc", infer_floating, elementwise_sbp, grad<dx_sinc>, kX);
const OpDef kSigmoid = row("sigmoid", infer_floating, kRises, grad<of_output<&kSigmoidGrad>>, kY);

const OpDef kRelu = row("relu", infer_numbers, kRises, grad<of_output<&kReluGrad>>, kY);
const OpDef kGelu = row("gelu", infer_floating, elementwise_sbp, grad<of_input<&kGeluGrad>>, kX);
const OpDef kGeluTanh =
    row("gelu_tanh", infer_floating, elementwise_sbp, grad<of_input<&kGeluTanhGrad>>, kX);
const OpDef kSilu = row("silu", infer_floating, elementwise_sbp, grad<of_input<&kSiluGrad>>, kX);
const OpDef kLeakyRelu = row_with<LeakyReluAttrs>(
    "leaky_relu", sbp_leaky_relu, grad<of_input_with<&kLeakyReluGrad, LeakyReluAttrs>>);
const OpDef kElu = row_with<EluAttrs>("elu", sbp_elu, grad<of_input_with<&kEluGrad, EluAttrs>>);
const OpDef kSoftplus = in_float32(row_with<SoftplusAttrs>(
    "softplus", sbp_softplus, grad<of_input_with<&kSoftplusGrad, SoftplusAttrs>>));

const OpDef kIsnan = predicate("isnan", sbp_isnan);
const OpDef kIsinf = predicate("isinf", elementwise_sbp);
const OpDef kIsfinite = predicate("isfinite", elementwise_sbp);
const OpDef kLogicalNot = predicate("logical_not", sbp_logical_not);

void register_unary(OpTable& table) {
  for (const OpDef* op :
       {&kNeg,   &kAbs,      &kSign,    &kSquare, &kFloor,    &kCeil,       &kRound, &kExp,
        &kExpm1, &kLog,      &kLog1p,   &kSqrt,   &kRsqrt,    &kReciprocal, &kSin,   &kCos,
        &kTanh,  &kErf,      &kSigmoid, &kRelu,   &kGelu,     &kGeluTanh,   &kSilu,  &kLeakyRelu,
        &kElu,   &kSoftplus, &kIsnan,   &kIsinf,  &kIsfinite, &kLogicalNot, &kTrunc, &kFrac,
        &kExp2,  &kLog2,     &kLog10,   &kErfc,   &kSinc}) {
    table.add(*op);
  }
}

}  // namespace ops

namespace {

Tensor run(const OpDef& op, const TensorArg& x) {
  return dispatch(op, {&x.tensor()}, x.site());
}

// Integers and bools are taken as default_dtype().
Tensor run_floating(const OpDef& op, const TensorArg& x) {
  if (is_floating(x->dtype())) [[likely]]
    return run(op, x);
  return run(op, TensorArg(cast(x, default_dtype()), x.site()));
}

// The largest finite number of a floating dtype.
double largest_of(DType dtype) {
  if (dtype == DType::kFloat16) return 65504;
  if (dtype == DType::kBFloat16) return 0x1.fep127;
  return dtype == DType::kFloat32 ? std::numeric_limits<float>::max()
                                  : std::numeric_limits<double>::max();
}

}  // namespace

Tensor neg(const TensorArg& x) {
  return run(ops::kNeg, x);
}

Tensor abs(const TensorArg& x) {
  return run(ops::kAbs, x);
}

Tensor sign(const TensorArg& x) {
  return run(ops::kSign, x);
}

Tensor square(const TensorArg& x) {
  if (x->dtype() == DType::kBool) {  // a power is a number
    return square({cast(x, DType::kInt64), x.site()});
  }
  return run(ops::kSquare, x);
}

Tensor floor(const TensorArg& x) {
  return run(ops::kFloor, x);
}

Tensor ceil(const TensorArg& x) {
  return run(ops::kCeil, x);
}

Tensor round(const TensorArg& x) {
  return run(ops::kRound, x);
}

Tensor trunc(const TensorArg& x) {
  return run(ops::kTrunc, x);
}

Tensor frac(const TensorArg& x) {
  return run(ops::kFrac, x);
}

Tensor round(const TensorArg& x, const RoundOptions& options) {
  if (options.decimals == 0) return round(x);
  if (!is_floating(x->dtype())) {
    throw InvalidArgument(str("[round] decimals is ", options.decimals, " for a tensor of ",
                              x->dtype(), "; cast it to a floating dtype, or leave decimals out"),
                          x.site());
  }
  const double power = std::pow(10.0, static_cast<double>(std::abs(options.decimals)));
  const Tensor scaled = options.decimals > 0 ? mul(x, power) : div(x, power);
  const Tensor whole = round({scaled, x.site()});
  const TensorArg result(whole, x.site());
  return options.decimals > 0 ? div(result, power) : mul(result, power);
}

Tensor operator-(const TensorArg& x) {
  return neg(x);
}

Tensor exp(const TensorArg& x) {
  return run_floating(ops::kExp, x);
}

Tensor exp2(const TensorArg& x) {
  return run_floating(ops::kExp2, x);
}

Tensor expm1(const TensorArg& x) {
  return run_floating(ops::kExpm1, x);
}

Tensor log(const TensorArg& x) {
  return run_floating(ops::kLog, x);
}

Tensor log2(const TensorArg& x) {
  return run_floating(ops::kLog2, x);
}

Tensor log10(const TensorArg& x) {
  return run_floating(ops::kLog10, x);
}

Tensor log1p(const TensorArg& x) {
  return run_floating(ops::kLog1p, x);
}

Tensor sqrt(const TensorArg& x) {
  return run_floating(ops::kSqrt, x);
}

Tensor rsqrt(const TensorArg& x) {
  return run_floating(ops::kRsqrt, x);
}

Tensor reciprocal(const TensorArg& x) {
  return run_floating(ops::kReciprocal, x);
}

Tensor sin(const TensorArg& x) {
  return run_floating(ops::kSin, x);
}

Tensor cos(const TensorArg& x) {
  return run_floating(ops::kCos, x);
}

Tensor tanh(const TensorArg& x) {
  return run_floating(ops::kTanh, x);
}

Tensor erf(const TensorArg& x) {
  return run_floating(ops::kErf, x);
}

Tensor erfc(const TensorArg& x) {
  return run_floating(ops::kErfc, x);
}

Tensor sinc(const TensorArg& x) {
  return run_floating(ops::kSinc, x);
}

Tensor sigmoid(const TensorArg& x) {
  return run_floating(ops::kSigmoid, x);
}

Tensor relu(const TensorArg& x) {
  return run(ops::kRelu, x);
}

const Tensor& relu_(const TensorArg& x) {
  dispatch_in_place(ops::kRelu, {&x.tensor()}, nullptr, x.site());
  return x;
}

Tensor gelu(const TensorArg& x, const GeluOptions& options) {
  if (options.approximate == "none") return run(ops::kGelu, x);
  if (options.approximate == "tanh") return run(ops::kGeluTanh, x);
  throw InvalidArgument(str("[gelu] approximate is '", options.approximate, "'; give none or tanh"),
                        x.site());
}

Tensor silu(const TensorArg& x) {
  return run(ops::kSilu, x);
}

Tensor leaky_relu(const TensorArg& x, const LeakyReluOptions& options) {
  const ops::LeakyReluAttrs attrs{options.negative_slope};
  return dispatch(ops::kLeakyRelu, {&x.tensor()}, attrs, x.site());
}

Tensor elu(const TensorArg& x, const EluOptions& options) {
  return dispatch(ops::kElu, {&x.tensor()}, ops::EluAttrs{options.alpha}, x.site());
}

Tensor softplus(const TensorArg& x, const SoftplusOptions& options) {
  if (!(options.beta > 0)) {
    throw InvalidArgument(str("[softplus] beta is ", options.beta, "; give a number above 0"),
                          x.site());
  }
  const ops::SoftplusAttrs attrs{options.beta, options.threshold};
  return dispatch(ops::kSoftplus, {&x.tensor()}, attrs, x.site());
}

Tensor isnan(const TensorArg& x) {
  return run(ops::kIsnan, x);
}

Tensor isinf(const TensorArg& x) {
  return run(ops::kIsinf, x);
}

Tensor isfinite(const TensorArg& x) {
  return run(ops::kIsfinite, x);
}

Tensor nan_to_num(const TensorArg& x, const NanToNumOptions& options) {
  if (!is_floating(x->dtype())) return clone(x);
  const double largest = largest_of(x->dtype());
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Tensor numbers = masked_fill(x, isnan(x), options.nan);
  const Tensor below = masked_fill(numbers, eq(x, kInfinity), options.posinf.value_or(largest));
  return masked_fill(below, eq(x, -kInfinity), options.neginf.value_or(-largest));
}

Tensor logical_not(const TensorArg& x) {
  return run(ops::kLogicalNot, x);
}

Tensor PointwiseMethods::exp(Site site) const {
  return flow::exp(TensorArg(self(), site));
}

Tensor PointwiseMethods::log(Site site) const {
  return flow::log(TensorArg(self(), site));
}

Tensor PointwiseMethods::sqrt(Site site) const {
  return flow::sqrt(TensorArg(self(), site));
}

Tensor PointwiseMethods::abs(Site site) const {
  return flow::abs(TensorArg(self(), site));
}

Tensor PointwiseMethods::neg(Site site) const {
  return flow::neg(TensorArg(self(), site));
}

Tensor PointwiseMethods::relu(Site site) const {
  return flow::relu(TensorArg(self(), site));
}

Tensor PointwiseMethods::tanh(Site site) const {
  return flow::tanh(TensorArg(self(), site));
}

Tensor PointwiseMethods::sigmoid(Site site) const {
  return flow::sigmoid(TensorArg(self(), site));
}

const Tensor& InPlaceMethods::relu_(Site site) const {
  flow::relu_(TensorArg(self(), site));
  return self();
}

Tensor PointwiseMethods::sign(Site site) const {
  return flow::sign(TensorArg(self(), site));
}

Tensor PointwiseMethods::square(Site site) const {
  return flow::square(TensorArg(self(), site));
}

Tensor PointwiseMethods::floor(Site site) const {
  return flow::floor(TensorArg(self(), site));
}

Tensor PointwiseMethods::ceil(Site site) const {
  return flow::ceil(TensorArg(self(), site));
}

Tensor PointwiseMethods::round(Site site) const {
  return flow::round(TensorArg(self(), site));
}

Tensor PointwiseMethods::round(const RoundOptions& options, Site site) const {
  return flow::round(TensorArg(self(), site), options);
}

Tensor PointwiseMethods::trunc(Site site) const {
  return flow::trunc(TensorArg(self(), site));
}

Tensor PointwiseMethods::frac(Site site) const {
  return flow::frac(TensorArg(self(), site));
}

Tensor PointwiseMethods::exp2(Site site) const {
  return flow::exp2(TensorArg(self(), site));
}

Tensor PointwiseMethods::expm1(Site site) const {
  return flow::expm1(TensorArg(self(), site));
}

Tensor PointwiseMethods::log2(Site site) const {
  return flow::log2(TensorArg(self(), site));
}

Tensor PointwiseMethods::log10(Site site) const {
  return flow::log10(TensorArg(self(), site));
}

Tensor PointwiseMethods::log1p(Site site) const {
  return flow::log1p(TensorArg(self(), site));
}

Tensor PointwiseMethods::rsqrt(Site site) const {
  return flow::rsqrt(TensorArg(self(), site));
}

Tensor PointwiseMethods::reciprocal(Site site) const {
  return flow::reciprocal(TensorArg(self(), site));
}

Tensor PointwiseMethods::sin(Site site) const {
  return flow::sin(TensorArg(self(), site));
}

Tensor PointwiseMethods::cos(Site site) const {
  return flow::cos(TensorArg(self(), site));
}

Tensor PointwiseMethods::erf(Site site) const {
  return flow::erf(TensorArg(self(), site));
}

Tensor PointwiseMethods::erfc(Site site) const {
  return flow::erfc(TensorArg(self(), site));
}

Tensor PointwiseMethods::sinc(Site site) const {
  return flow::sinc(TensorArg(self(), site));
}

Tensor PointwiseMethods::nan_to_num(Site site) const {
  return flow::nan_to_num(TensorArg(self(), site));
}

Tensor PointwiseMethods::nan_to_num(const NanToNumOptions& options, Site site) const {
  return flow::nan_to_num(TensorArg(self(), site), options);
}

Tensor PointwiseMethods::logical_not(Site site) const {
  return flow::logical_not(TensorArg(self(), site));
}

Tensor PointwiseMethods::isnan(Site site) const {
  return flow::isnan(TensorArg(self(), site));
}

Tensor PointwiseMethods::isinf(Site site) const {
  return flow::isinf(TensorArg(self(), site));
}

Tensor PointwiseMethods::isfinite(Site site) const {
  return flow::isfinite(TensorArg(self(), site));
}

}  // namespace flow
