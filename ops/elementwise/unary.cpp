#include "ops/elementwise/unary.h"

#include <cmath>
#include <cstdlib>
#include <limits>

#include "core/default_dtype.h"
#include "core/dispatch.h"
#include "ops/autocast.h"
#include "ops/creation/copy.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/old_value.h"
#include "ops/elementwise/unary_op.h"
#include "ops/elementwise/unary_rows.h"
#include "ops/elementwise/where.h"
#include "ops/named_errors.h"
#include "ops/sbp_rules.h"

namespace flow {

namespace ops {

void sbp_isnan(SbpContext& ctx) {
  elementwise_sbp(ctx);
  for (const Sbp partial : {sbp::partial_max, sbp::partial_min})
    ctx.add({partial}, {sbp::partial_max});
}

void sbp_logical_not(SbpContext& ctx) {
  elementwise_sbp(ctx);
  add_partials(ctx, ctx.input(0).dtype == DType::kBool ? kDecreasing : kNoPartials);
}

namespace {

// ---- from a row to its op

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

constexpr InferFn infer_of(const UnaryFacts& facts) {
  if (facts.gives_bools) return infer_predicate;
  if (facts.takes == Takes::kAll) return infer_any;
  return facts.takes == Takes::kNumbers ? infer_numbers : infer_floating;
}

template <class Row>
constexpr bool kHasGradOfX = requires {
  Row::kGradOfX;
};

template <class Row>
constexpr bool kHasGradOfY = requires {
  Row::kGradOfY;
};

template <class Row>
constexpr bool kReadsX = kHasGradOfX<Row> || requires(const Tensor& t) {
  Row::dx_of_x(t, t);
};

template <class Row>
constexpr bool kReadsY = kHasGradOfY<Row> || requires(const Tensor& t) {
  Row::dx_of_y(t, t);
};

template <class Row>
Tensor slope(const Tensor& dy, const GradContext& ctx) {
  if constexpr (kHasGradOfX<Row>) {
    const Tensor x = ctx.input(0);
    return dispatch(*Row::kGradOfX, {&dy, &x}, Site::here());
  } else if constexpr (kHasGradOfY<Row>) {
    const Tensor y = ctx.output();
    return dispatch(*Row::kGradOfY, {&dy, &y}, Site::here());
  } else if constexpr (kReadsX<Row>) {
    return Row::dx_of_x(dy, ctx.input(0));
  } else if constexpr (kReadsY<Row>) {
    return Row::dx_of_y(dy, ctx.output());
  } else {
    return Row::dx(dy);
  }
}

// The gradient is zero, and is not set, if dy is zero or the function is a step function.
template <class Row>
void grad([[maybe_unused]] GradContext& ctx) {
  if constexpr (!Row::kFacts.is_step) {
    if (ctx.dy().defined()) ctx.set(0, slope<Row>(ctx.dy(), ctx));
  }
}

template <class Row>
constexpr OpDef op_for() {
  constexpr UnaryFacts kFacts = Row::kFacts;
  OpDef op = {.name = kFacts.name, .infer = infer_of(kFacts), .sbp = kFacts.sbp};
  op.autocast = kFacts.autocast;
  if constexpr (kFacts.gives_bools) {
    op.grad = not_differentiable;
  } else {
    op.grad = grad<Row>;
    op.saved_inputs = kReadsX<Row> ? 1U : 0U;
    op.saved_outputs = kReadsY<Row> ? 1U : 0U;
    op.allows_in_place = true;
  }
  return op;
}

template <class... Row>
constexpr std::array<OpDef, sizeof...(Row)> ops_for(Rows<Row...> /*rows*/) {
  return {op_for<Row>()...};
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

constexpr std::array<OpDef, UnaryRows::kSize> kUnaryOps = ops_for(UnaryRows());

const OpDef kLeakyRelu = row_with<LeakyReluAttrs>("leaky_relu", sbp_leaky_relu,
                                                  grad_with<&kLeakyReluGrad, LeakyReluAttrs>);
const OpDef kElu = row_with<EluAttrs>("elu", sbp_elu, grad_with<&kEluGrad, EluAttrs>);
const OpDef kSoftplus = in_float32(
    row_with<SoftplusAttrs>("softplus", sbp_softplus, grad_with<&kSoftplusGrad, SoftplusAttrs>));

void register_unary(OpTable& table) {
  for (const OpDef& op : kUnaryOps)
    table.add(op);
  for (const OpDef* op : {&kLeakyRelu, &kElu, &kSoftplus})
    table.add(*op);
}

}  // namespace ops

namespace {

// ---- from a row to its functions

template <class Row>
Tensor run(const TensorArg& x) {
  constexpr ops::Takes kTakes = Row::kFacts.takes;
  if constexpr (kTakes == ops::Takes::kPromoted || kTakes == ops::Takes::kPromotedNumbers) {
    const bool is_promoted =
        kTakes == ops::Takes::kPromoted ? !is_floating(x->dtype()) : is_integral(x->dtype());
    if (is_promoted) [[unlikely]] {
      const Tensor floating = cast(x, default_dtype());
      return dispatch(ops::op_of<Row>(), {&floating}, x.site());
    }
  }
  return dispatch(ops::op_of<Row>(), {&x.tensor()}, x.site());
}

template <class Row>
const Tensor& run_in_place(const TensorArg& x) {
  constexpr const OpDef& op = ops::op_of<Row>();
  return ops::named_in_place(op, [&]() -> const Tensor& {
    if (ops::reads_old_value(op, {&x.tensor()})) {
      return ops::write_from_copy(
          x, [&](const TensorArg& old) { return dispatch(op, {&old.tensor()}, x.site()); });
    }
    dispatch_in_place(op, {&x.tensor()}, nullptr, x.site());
    return x;
  });
}

// The largest finite number of a floating dtype.
double largest_of(DType dtype) {
  if (dtype == DType::kFloat16) return 65504;
  if (dtype == DType::kBFloat16) return 0x1.fep127;
  return dtype == DType::kFloat32 ? std::numeric_limits<float>::max()
                                  : std::numeric_limits<double>::max();
}

}  // namespace

// clang-format off
Tensor neg(const TensorArg& x) { return run<ops::Neg>(x); }
Tensor abs(const TensorArg& x) { return run<ops::Abs>(x); }
Tensor sign(const TensorArg& x) { return run<ops::Sign>(x); }
Tensor floor(const TensorArg& x) { return run<ops::Floor>(x); }
Tensor ceil(const TensorArg& x) { return run<ops::Ceil>(x); }
Tensor round(const TensorArg& x) { return run<ops::Round>(x); }
Tensor trunc(const TensorArg& x) { return run<ops::Trunc>(x); }
Tensor frac(const TensorArg& x) { return run<ops::Frac>(x); }
Tensor exp(const TensorArg& x) { return run<ops::Exp>(x); }
Tensor exp2(const TensorArg& x) { return run<ops::Exp2>(x); }
Tensor expm1(const TensorArg& x) { return run<ops::Expm1>(x); }
Tensor log(const TensorArg& x) { return run<ops::Log>(x); }
Tensor log2(const TensorArg& x) { return run<ops::Log2>(x); }
Tensor log10(const TensorArg& x) { return run<ops::Log10>(x); }
Tensor log1p(const TensorArg& x) { return run<ops::Log1p>(x); }
Tensor sqrt(const TensorArg& x) { return run<ops::Sqrt>(x); }
Tensor rsqrt(const TensorArg& x) { return run<ops::Rsqrt>(x); }
Tensor reciprocal(const TensorArg& x) { return run<ops::Reciprocal>(x); }
Tensor sin(const TensorArg& x) { return run<ops::Sin>(x); }
Tensor cos(const TensorArg& x) { return run<ops::Cos>(x); }
Tensor tan(const TensorArg& x) { return run<ops::Tan>(x); }
Tensor asin(const TensorArg& x) { return run<ops::Asin>(x); }
Tensor acos(const TensorArg& x) { return run<ops::Acos>(x); }
Tensor atan(const TensorArg& x) { return run<ops::Atan>(x); }
Tensor sinh(const TensorArg& x) { return run<ops::Sinh>(x); }
Tensor cosh(const TensorArg& x) { return run<ops::Cosh>(x); }
Tensor tanh(const TensorArg& x) { return run<ops::Tanh>(x); }
Tensor asinh(const TensorArg& x) { return run<ops::Asinh>(x); }
Tensor acosh(const TensorArg& x) { return run<ops::Acosh>(x); }
Tensor atanh(const TensorArg& x) { return run<ops::Atanh>(x); }
Tensor sinc(const TensorArg& x) { return run<ops::Sinc>(x); }
Tensor erf(const TensorArg& x) { return run<ops::Erf>(x); }
Tensor erfc(const TensorArg& x) { return run<ops::Erfc>(x); }
Tensor ndtr(const TensorArg& x) { return run<ops::Ndtr>(x); }
Tensor sigmoid(const TensorArg& x) { return run<ops::Sigmoid>(x); }
Tensor relu(const TensorArg& x) { return run<ops::Relu>(x); }
Tensor silu(const TensorArg& x) { return run<ops::Silu>(x); }
Tensor mish(const TensorArg& x) { return run<ops::Mish>(x); }
Tensor hardswish(const TensorArg& x) { return run<ops::Hardswish>(x); }
Tensor hardsigmoid(const TensorArg& x) { return run<ops::Hardsigmoid>(x); }
Tensor softsign(const TensorArg& x) { return run<ops::Softsign>(x); }
Tensor logsigmoid(const TensorArg& x) { return run<ops::Logsigmoid>(x); }
Tensor isnan(const TensorArg& x) { return run<ops::Isnan>(x); }
Tensor isinf(const TensorArg& x) { return run<ops::Isinf>(x); }
Tensor isfinite(const TensorArg& x) { return run<ops::Isfinite>(x); }
Tensor logical_not(const TensorArg& x) { return run<ops::LogicalNot>(x); }
Tensor ops::gelu_none(const TensorArg& x) { return run<ops::Gelu>(x); }
Tensor ops::gelu_tanh(const TensorArg& x) { return run<ops::GeluTanh>(x); }

const Tensor& neg_(const TensorArg& x) { return run_in_place<ops::Neg>(x); }
const Tensor& abs_(const TensorArg& x) { return run_in_place<ops::Abs>(x); }
const Tensor& sign_(const TensorArg& x) { return run_in_place<ops::Sign>(x); }
const Tensor& square_(const TensorArg& x) { return run_in_place<ops::Square>(x); }
const Tensor& floor_(const TensorArg& x) { return run_in_place<ops::Floor>(x); }
const Tensor& ceil_(const TensorArg& x) { return run_in_place<ops::Ceil>(x); }
const Tensor& round_(const TensorArg& x) { return run_in_place<ops::Round>(x); }
const Tensor& trunc_(const TensorArg& x) { return run_in_place<ops::Trunc>(x); }
const Tensor& frac_(const TensorArg& x) { return run_in_place<ops::Frac>(x); }
const Tensor& exp_(const TensorArg& x) { return run_in_place<ops::Exp>(x); }
const Tensor& exp2_(const TensorArg& x) { return run_in_place<ops::Exp2>(x); }
const Tensor& expm1_(const TensorArg& x) { return run_in_place<ops::Expm1>(x); }
const Tensor& log_(const TensorArg& x) { return run_in_place<ops::Log>(x); }
const Tensor& log2_(const TensorArg& x) { return run_in_place<ops::Log2>(x); }
const Tensor& log10_(const TensorArg& x) { return run_in_place<ops::Log10>(x); }
const Tensor& log1p_(const TensorArg& x) { return run_in_place<ops::Log1p>(x); }
const Tensor& sqrt_(const TensorArg& x) { return run_in_place<ops::Sqrt>(x); }
const Tensor& rsqrt_(const TensorArg& x) { return run_in_place<ops::Rsqrt>(x); }
const Tensor& reciprocal_(const TensorArg& x) { return run_in_place<ops::Reciprocal>(x); }
const Tensor& sin_(const TensorArg& x) { return run_in_place<ops::Sin>(x); }
const Tensor& cos_(const TensorArg& x) { return run_in_place<ops::Cos>(x); }
const Tensor& tan_(const TensorArg& x) { return run_in_place<ops::Tan>(x); }
const Tensor& tanh_(const TensorArg& x) { return run_in_place<ops::Tanh>(x); }
const Tensor& erf_(const TensorArg& x) { return run_in_place<ops::Erf>(x); }
const Tensor& erfc_(const TensorArg& x) { return run_in_place<ops::Erfc>(x); }
const Tensor& ndtr_(const TensorArg& x) { return run_in_place<ops::Ndtr>(x); }
const Tensor& sigmoid_(const TensorArg& x) { return run_in_place<ops::Sigmoid>(x); }
const Tensor& relu_(const TensorArg& x) { return run_in_place<ops::Relu>(x); }
const Tensor& silu_(const TensorArg& x) { return run_in_place<ops::Silu>(x); }

Tensor PointwiseMethods::ndtr(Site site) const { return flow::ndtr({self(), site}); }

// clang-format on

Tensor square(const TensorArg& x) {
  if (x->dtype() == DType::kBool) {  // a power is a number
    return square({cast(x, DType::kInt64), x.site()});
  }
  return run<ops::Square>(x);
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
  const Tensor scaled = options.decimals > 0 ? mul(x, power) : div(x, power);
  const Tensor whole = round({scaled, x.site()});
  const TensorArg result(whole, x.site());
  return options.decimals > 0 ? div(result, power) : mul(result, power);
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

}  // namespace flow
