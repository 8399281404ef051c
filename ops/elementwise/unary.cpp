#include "ops/elementwise/unary.h"

#include <cmath>
#include <cstdlib>
#include <limits>

#include "core/dispatch.h"
#include "ops/autocast.h"
#include "ops/creation/copy.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/row_calls.h"
#include "ops/elementwise/unary_op.h"
#include "ops/elementwise/where.h"
#include "ops/named_errors.h"
#include "ops/promotion.h"
#include "ops/sbp_rules.h"

namespace flow {

namespace ops {

namespace {

void infer_floating(InferContext& ctx) {
  ctx.check(is_floating(ctx.input(0).dtype), "needs a floating dtype; cast first");
  ctx.add_output_like(0);
}

// ---- ops with attrs

void sbp_leaky_relu(SbpContext& ctx) {
  const double slope = ctx.attrs<LeakyReluAttrs>().negative_slope;
  elementwise_sbp(ctx);
  add_partials(ctx, slope >= 0 ? kIncreasing : kNoPartials);
}

void sbp_elu(SbpContext& ctx) {
  elementwise_sbp(ctx);
  add_partials(ctx, ctx.attrs<EluAttrs>().alpha >= 0 ? kIncreasing : kNoPartials);
}

// The function steps down to x at the threshold. If the threshold is high, the step is below the
// rounding of float32.
void sbp_softplus(SbpContext& ctx) {
  elementwise_sbp(ctx);
  add_partials(ctx, ctx.attrs<SoftplusAttrs>().threshold >= 20 ? kIncreasing : kNoPartials);
}

// dx = kOp(dy, x) with the attrs of the forward op
template <const OpDef* kOp, class Attrs>
void grad_with(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const Tensor x = ctx.input(0);
  ctx.set(0, dispatch(*kOp, {&ctx.dy(), &x}, ctx.attrs<Attrs>(), Site::here()));
}

template <class Attrs>
constexpr OpDef row_with(const char* name, SbpFn sbp, GradFn grad) {
  return {
      .name = name,
      .attrs = attrs_def<Attrs>(),
      .infer = infer_floating,
      .sbp = sbp,
      .grad = grad,
      .saved_inputs = 1,
      .allows_in_place = true,
  };
}

}  // namespace

const OpDef kLeakyRelu = row_with<LeakyReluAttrs>("leaky_relu", sbp_leaky_relu,
                                                  grad_with<&kLeakyReluGrad, LeakyReluAttrs>);
const OpDef kElu = row_with<EluAttrs>("elu", sbp_elu, grad_with<&kEluGrad, EluAttrs>);
const OpDef kSoftplus = in_float32(
    row_with<SoftplusAttrs>("softplus", sbp_softplus, grad_with<&kSoftplusGrad, SoftplusAttrs>));

void register_unary(OpTable& table) {
  add_ops(table, UnaryRows());
  for (const OpDef* op : {&kLeakyRelu, &kElu, &kSoftplus})
    table.add(*op);
}

}  // namespace ops

namespace {

// The largest finite number of a floating dtype.
double largest_of(DType dtype) {
  if (dtype == DType::kFloat16) return 65504;
  if (dtype == DType::kBFloat16) return 0x1.fep127;
  return dtype == DType::kFloat32 ? std::numeric_limits<float>::max()
                                  : std::numeric_limits<double>::max();
}

}  // namespace

// clang-format off
Tensor neg(const TensorArg& x) { return ops::run<ops::Neg>(x); }
Tensor abs(const TensorArg& x) { return ops::run<ops::Abs>(x); }
Tensor sign(const TensorArg& x) { return ops::run<ops::Sign>(x); }
Tensor floor(const TensorArg& x) { return ops::run<ops::Floor>(x); }
Tensor ceil(const TensorArg& x) { return ops::run<ops::Ceil>(x); }
Tensor round(const TensorArg& x) { return ops::run<ops::Round>(x); }
Tensor trunc(const TensorArg& x) { return ops::run<ops::Trunc>(x); }
Tensor frac(const TensorArg& x) { return ops::run<ops::Frac>(x); }
Tensor exp(const TensorArg& x) { return ops::run<ops::Exp>(x); }
Tensor exp2(const TensorArg& x) { return ops::run<ops::Exp2>(x); }
Tensor expm1(const TensorArg& x) { return ops::run<ops::Expm1>(x); }
Tensor log(const TensorArg& x) { return ops::run<ops::Log>(x); }
Tensor log2(const TensorArg& x) { return ops::run<ops::Log2>(x); }
Tensor log10(const TensorArg& x) { return ops::run<ops::Log10>(x); }
Tensor log1p(const TensorArg& x) { return ops::run<ops::Log1p>(x); }
Tensor sqrt(const TensorArg& x) { return ops::run<ops::Sqrt>(x); }
Tensor rsqrt(const TensorArg& x) { return ops::run<ops::Rsqrt>(x); }
Tensor reciprocal(const TensorArg& x) { return ops::run<ops::Reciprocal>(x); }
Tensor sin(const TensorArg& x) { return ops::run<ops::Sin>(x); }
Tensor cos(const TensorArg& x) { return ops::run<ops::Cos>(x); }
Tensor tanh(const TensorArg& x) { return ops::run<ops::Tanh>(x); }
Tensor sinc(const TensorArg& x) { return ops::run<ops::Sinc>(x); }
Tensor erf(const TensorArg& x) { return ops::run<ops::Erf>(x); }
Tensor erfc(const TensorArg& x) { return ops::run<ops::Erfc>(x); }
Tensor ndtr(const TensorArg& x) { return ops::run<ops::Ndtr>(x); }
Tensor sigmoid(const TensorArg& x) { return ops::run<ops::Sigmoid>(x); }
Tensor relu(const TensorArg& x) { return ops::run<ops::Relu>(x); }
Tensor silu(const TensorArg& x) { return ops::run<ops::Silu>(x); }
Tensor isnan(const TensorArg& x) { return ops::run<ops::Isnan>(x); }
Tensor isinf(const TensorArg& x) { return ops::run<ops::Isinf>(x); }
Tensor isfinite(const TensorArg& x) { return ops::run<ops::Isfinite>(x); }
Tensor logical_not(const TensorArg& x) { return ops::run<ops::LogicalNot>(x); }
Tensor ops::gelu_none(const TensorArg& x) { return ops::run<ops::Gelu>(x); }
Tensor ops::gelu_tanh(const TensorArg& x) { return ops::run<ops::GeluTanh>(x); }
const OpDef& ops::gelu_tanh_op() { return ops::op_of<ops::GeluTanh>(); }

const Tensor& neg_(const TensorArg& x) { return ops::run_in_place<ops::Neg>(x); }
const Tensor& abs_(const TensorArg& x) { return ops::run_in_place<ops::Abs>(x); }
const Tensor& sign_(const TensorArg& x) { return ops::run_in_place<ops::Sign>(x); }
const Tensor& floor_(const TensorArg& x) { return ops::run_in_place<ops::Floor>(x); }
const Tensor& ceil_(const TensorArg& x) { return ops::run_in_place<ops::Ceil>(x); }
const Tensor& round_(const TensorArg& x) { return ops::run_in_place<ops::Round>(x); }
const Tensor& trunc_(const TensorArg& x) { return ops::run_in_place<ops::Trunc>(x); }
const Tensor& frac_(const TensorArg& x) { return ops::run_in_place<ops::Frac>(x); }
const Tensor& exp_(const TensorArg& x) { return ops::run_in_place<ops::Exp>(x); }
const Tensor& exp2_(const TensorArg& x) { return ops::run_in_place<ops::Exp2>(x); }
const Tensor& expm1_(const TensorArg& x) { return ops::run_in_place<ops::Expm1>(x); }
const Tensor& log_(const TensorArg& x) { return ops::run_in_place<ops::Log>(x); }
const Tensor& log2_(const TensorArg& x) { return ops::run_in_place<ops::Log2>(x); }
const Tensor& log10_(const TensorArg& x) { return ops::run_in_place<ops::Log10>(x); }
const Tensor& log1p_(const TensorArg& x) { return ops::run_in_place<ops::Log1p>(x); }
const Tensor& sqrt_(const TensorArg& x) { return ops::run_in_place<ops::Sqrt>(x); }
const Tensor& rsqrt_(const TensorArg& x) { return ops::run_in_place<ops::Rsqrt>(x); }
const Tensor& reciprocal_(const TensorArg& x) { return ops::run_in_place<ops::Reciprocal>(x); }
const Tensor& sin_(const TensorArg& x) { return ops::run_in_place<ops::Sin>(x); }
const Tensor& cos_(const TensorArg& x) { return ops::run_in_place<ops::Cos>(x); }
const Tensor& tan_(const TensorArg& x) { return ops::run_in_place<ops::Tan>(x); }
const Tensor& tanh_(const TensorArg& x) { return ops::run_in_place<ops::Tanh>(x); }
const Tensor& erf_(const TensorArg& x) { return ops::run_in_place<ops::Erf>(x); }
const Tensor& erfc_(const TensorArg& x) { return ops::run_in_place<ops::Erfc>(x); }
const Tensor& ndtr_(const TensorArg& x) { return ops::run_in_place<ops::Ndtr>(x); }
const Tensor& sigmoid_(const TensorArg& x) { return ops::run_in_place<ops::Sigmoid>(x); }
const Tensor& relu_(const TensorArg& x) { return ops::run_in_place<ops::Relu>(x); }
const Tensor& silu_(const TensorArg& x) { return ops::run_in_place<ops::Silu>(x); }

Tensor PointwiseMethods::ndtr(Site site) const { return flow::ndtr({self(), site}); }

// clang-format on

Tensor square(const TensorArg& x) {
  if (x->dtype() == DType::kBool) {  // a power is a number
    return square({cast(x, DType::kInt64), x.site()});
  }
  return ops::run<ops::Square>(x);
}

const Tensor& square_(const TensorArg& x) {
  if (x->dtype() == DType::kBool) {
    throw InvalidArgument(str("[square_] an int64 result does not fit into a tensor of bool; use ",
                              "the form without underscore; received ", x->meta()),
                          x.site());
  }
  return ops::run_in_place<ops::Square>(x);
}

Tensor operator-(const TensorArg& x) {
  return neg(x);
}

Tensor round(const TensorArg& x, const RoundOptions& options) {
  if (options.decimals == 0) return round(x);
  if (!is_floating(x->dtype())) {
    throw InvalidArgument(str("[round] decimals is ", options.decimals, " for a tensor of ",
                              x->dtype(), "; cast it to a floating dtype, or leave decimals out"),
                          x.site());
  }
  const double power = std::pow(10.0, static_cast<double>(std::abs(options.decimals)));
  // 16 bits do not hold 1000 x.
  const Tensor own = ops::widened(x);
  const TensorArg wide(own, x.site());
  const Tensor scaled = options.decimals > 0 ? mul(wide, power) : div(wide, power);
  const Tensor whole = round({scaled, x.site()});
  const TensorArg result(whole, x.site());
  const Tensor y = options.decimals > 0 ? div(result, power) : mul(result, power);
  return cast({y, x.site()}, x->dtype());
}

Tensor gelu(const TensorArg& x, const GeluOptions& options) {
  if (options.approximate == "none") return ops::gelu_none(x);
  if (options.approximate == "tanh") return ops::gelu_tanh(x);
  throw InvalidArgument(str("[gelu] approximate is '", options.approximate, "'; give none or tanh"),
                        x.site());
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

Tensor nan_to_num(const TensorArg& x, const NanToNumOptions& options) {
  if (!is_floating(x->dtype())) return clone(x);
  const double largest = largest_of(x->dtype());
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Tensor numbers = masked_fill(x, isnan(x), options.nan);
  const Tensor below = masked_fill(numbers, eq(x, kInfinity), options.posinf.value_or(largest));
  return masked_fill(below, eq(x, -kInfinity), options.neginf.value_or(-largest));
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

Tensor PointwiseMethods::silu(Site site) const {
  return flow::silu(TensorArg(self(), site));
}

Tensor PointwiseMethods::gelu(Site site) const {
  return flow::gelu(TensorArg(self(), site));
}

Tensor PointwiseMethods::gelu(const GeluOptions& options, Site site) const {
  return flow::gelu(TensorArg(self(), site), options);
}

Tensor PointwiseMethods::leaky_relu(Site site) const {
  return flow::leaky_relu(TensorArg(self(), site));
}

Tensor PointwiseMethods::leaky_relu(const LeakyReluOptions& options, Site site) const {
  return flow::leaky_relu(TensorArg(self(), site), options);
}

Tensor PointwiseMethods::elu(Site site) const {
  return flow::elu(TensorArg(self(), site));
}

Tensor PointwiseMethods::elu(const EluOptions& options, Site site) const {
  return flow::elu(TensorArg(self(), site), options);
}

Tensor PointwiseMethods::softplus(Site site) const {
  return flow::softplus(TensorArg(self(), site));
}

Tensor PointwiseMethods::softplus(const SoftplusOptions& options, Site site) const {
  return flow::softplus(TensorArg(self(), site), options);
}

}  // namespace flow
