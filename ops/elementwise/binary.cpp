#include "ops/elementwise/binary.h"

#include <cmath>

#include "core/dispatch.h"
#include "ops/autocast.h"
#include "ops/elementwise/binary_formulas.h"
#include "ops/elementwise/binary_op.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/named_errors.h"
#include "ops/promotion.h"
#include "ops/reduce/reduce.h"
#include "ops/sbp_rules.h"

namespace flow {

namespace ops {

namespace {

// ---- shapes and dtypes

void check_dtypes(const InferContext& ctx) {
  ctx.check(ctx.input(0).dtype == ctx.input(1).dtype,
            "dtypes differ; cast one, or call the public function, which promotes");
}

Shape common_shape(const InferContext& ctx) {
  return broadcast_shapes(ctx.input(0).shape, ctx.input(1).shape, ctx.op().name);
}

void infer_any(InferContext& ctx) {
  check_dtypes(ctx);
  ctx.add_output(common_shape(ctx), ctx.input(0).dtype);
}

void infer_numbers(InferContext& ctx) {
  ctx.check(ctx.input(0).dtype != DType::kBool,
            "is not defined for bool; use logical_xor, logical_and or cast first");
  infer_any(ctx);
}

void infer_floating(InferContext& ctx) {
  ctx.check(is_floating(ctx.input(0).dtype), "needs a floating dtype; cast first");
  infer_any(ctx);
}

void infer_scalar(InferContext& ctx) {
  ctx.add_output_like(0);
}

void infer_scalar_numbers(InferContext& ctx) {
  ctx.check(ctx.input(0).dtype != DType::kBool, "is not defined for bool; cast first");
  ctx.add_output_like(0);
}

// ---- layouts

constexpr Sbp kB = sbp::broadcast;
constexpr Sbp kP = sbp::partial_sum;
constexpr Sbp kMax = sbp::partial_max;
constexpr Sbp kMin = sbp::partial_min;

// Sums pass if they are partial in both; an extremum of one passes if the other is whole. a - b
// falls in b.
template <bool kFallsInB>
void sbp_sum(SbpContext& ctx) {
  elementwise_sbp(ctx);
  ctx.add({kP, kP}, {kP});
  if (!is_floating(ctx.input(0).dtype)) return;  // integers wrap around
  for (const Sbp side : {kMax, kMin}) {
    const Sbp other = side == kMax ? kMin : kMax;
    ctx.add({side, kB}, {side});
    ctx.add({kB, side}, {kFallsInB ? other : side});
  }
}

void sbp_add(SbpContext& ctx) {
  ctx.attrs<AddAttrs>().alpha < 0 ? sbp_sum<true>(ctx) : sbp_sum<false>(ctx);
}

// Linear in each.
void sbp_mul(SbpContext& ctx) {
  elementwise_sbp(ctx);
  ctx.add({kP, kB}, {kP});
  ctx.add({kB, kP}, {kP});
}

// Linear in the first.
void sbp_first(SbpContext& ctx) {
  elementwise_sbp(ctx);
  ctx.add({kP, kB}, {kP});
}

// The maximum of maxima. An extremum of either kind passes if the other tensor is whole, because
// both functions rise in each argument.
template <bool kIsMaximum>
void sbp_extremum(SbpContext& ctx) {
  elementwise_sbp(ctx);
  const Sbp own = kIsMaximum ? kMax : kMin;
  ctx.add({own, own}, {own});
  for (const Sbp side : {kMax, kMin}) {
    ctx.add({side, kB}, {side});
    ctx.add({kB, side}, {side});
  }
}

// Rises in each argument.
void sbp_rises(SbpContext& ctx) {
  elementwise_sbp(ctx);
  for (const Sbp side : {kMax, kMin}) {
    ctx.add({side, kB}, {side});
    ctx.add({kB, side}, {side});
  }
}

// x c and x / c are linear. The sign of c decides whether they keep or reverse the order.
void sbp_scale(SbpContext& ctx) {
  const double scale = ctx.attrs<ScalarAttrs>().value.to<double>();
  elementwise_sbp(ctx);
  add_arithmetic_partials(ctx, kLinear | (scale > 0 ? kIncreasing : kNoPartials) |
                                   (scale < 0 ? kDecreasing : kNoPartials));
}

// Odd whole powers keep the order, for negative numbers too. The square root is NaN below zero;
// other positive powers are NaN or infinite there, and whole negative ones reverse the order at the
// pole.
void sbp_pow_scalar(SbpContext& ctx) {
  const double c = ctx.attrs<ScalarAttrs>().value.to<double>();
  elementwise_sbp(ctx);
  if (c == 1) {
    add_partials(ctx, kLinear | kIncreasing);
  } else if (c > 0 && std::fmod(c, 2) == 1) {
    add_arithmetic_partials(ctx, kIncreasing);
  } else if (c == 0.5) {
    add_arithmetic_partials(ctx, kMinToMin);
  }
}

void sbp_rpow_scalar(SbpContext& ctx) {
  const double c = ctx.attrs<ScalarAttrs>().value.to<double>();
  elementwise_sbp(ctx);
  if (c > 1) add_arithmetic_partials(ctx, kIncreasing);
  if (c > 0 && c < 1) add_arithmetic_partials(ctx, kDecreasing);
}

// Truncating keeps the order of quotients.
void sbp_trunc_divide_scalar(SbpContext& ctx) {
  const double c = ctx.attrs<ScalarAttrs>().value.to<double>();
  elementwise_sbp(ctx);
  if (c > 0) add_arithmetic_partials(ctx, kIncreasing);
  if (c < 0) add_arithmetic_partials(ctx, kDecreasing);
}

// ---- gradients

// dx of an input that was broadcast: dx summed over the repeats.
void set_unbroadcast(GradContext& ctx, int i, const Tensor& dx) {
  const Shape& shape = ctx.input_meta(i)->shape;
  ctx.set(i, dx.shape() == shape ? dx : sum_to(dx, shape));
}

// da = dy, db = alpha dy
void grad_add(GradContext& ctx) {
  const Tensor& dy = ctx.dy();
  if (!dy.defined()) return;
  if (ctx.needs(0)) set_unbroadcast(ctx, 0, dy);
  const double alpha = ctx.attrs<AddAttrs>().alpha;
  if (ctx.needs(1)) set_unbroadcast(ctx, 1, alpha == 1 ? dy : mul(dy, alpha));
}

// da = dy, db = -dy
void grad_sub(GradContext& ctx) {
  const Tensor& dy = ctx.dy();
  if (!dy.defined()) return;
  if (ctx.needs(0)) set_unbroadcast(ctx, 0, dy);
  if (ctx.needs(1)) set_unbroadcast(ctx, 1, neg(dy));
}

// da = dy b, db = dy a
void grad_mul(GradContext& ctx) {
  const Tensor& dy = ctx.dy();
  if (!dy.defined()) return;
  if (ctx.needs(0)) set_unbroadcast(ctx, 0, mul(dy, ctx.input(1)));
  if (ctx.needs(1)) set_unbroadcast(ctx, 1, mul(dy, ctx.input(0)));
}

// y = a / b: da = dy / b, db = -dy y / b
void grad_div(GradContext& ctx) {
  const Tensor& dy = ctx.dy();
  if (!dy.defined()) return;
  const Tensor da = div(dy, ctx.input(1));
  if (ctx.needs(0)) set_unbroadcast(ctx, 0, da);
  if (ctx.needs(1)) set_unbroadcast(ctx, 1, neg(mul(da, ctx.output())));
}

// y = a^b: da = dy b a^(b-1), 0 where b is 0; db = dy y log a, 0 where a is 0 and b >= 0
void grad_pow(GradContext& ctx) {
  const Tensor& dy = ctx.dy();
  if (!dy.defined()) return;
  const Tensor a = ctx.input(0);
  const Tensor b = ctx.input(1);
  if (ctx.needs(0)) {
    const Tensor da = mul(dy, mul(b, pow(a, sub(b, 1))));
    set_unbroadcast(ctx, 0, masked_fill(da, eq(b, 0), 0));
  }
  if (ctx.needs(1)) {
    const Tensor is_flat = logical_and(eq(a, 0), ge(b, 0));
    set_unbroadcast(ctx, 1, masked_fill(mul(dy, mul(ctx.output(), log(a))), is_flat, 0));
  }
}

// da = dy, db = -dy trunc(a / b); remainder: with floor instead of trunc
template <const char* kRounding>
void grad_rest(GradContext& ctx) {
  const Tensor& dy = ctx.dy();
  if (!dy.defined()) return;
  if (ctx.needs(0)) set_unbroadcast(ctx, 0, dy);
  if (ctx.needs(1)) {
    const Tensor quotient = div(ctx.input(0), ctx.input(1), {.rounding_mode = kRounding});
    set_unbroadcast(ctx, 1, neg(mul(dy, quotient)));
  }
}

constexpr char kTrunc[] = "trunc";
constexpr char kFloor[] = "floor";

// dy goes to the larger (smaller) one; if they are equal, each gets half of it
template <bool kIsMaximum>
void grad_extremum(GradContext& ctx) {
  const Tensor& dy = ctx.dy();
  if (!dy.defined()) return;
  const Tensor a = ctx.input(0);
  const Tensor b = ctx.input(1);
  const Tensor shared = where(eq(a, b), mul(dy, 0.5), dy);
  if (ctx.needs(0)) {
    set_unbroadcast(ctx, 0, masked_fill(shared, kIsMaximum ? lt(a, b) : gt(a, b), 0));
  }
  if (ctx.needs(1)) {
    set_unbroadcast(ctx, 1, masked_fill(shared, kIsMaximum ? lt(b, a) : gt(b, a), 0));
  }
}

// da = dy / (1 + exp(b - a)), db = dy / (1 + exp(a - b))
void grad_logaddexp(GradContext& ctx) {
  const Tensor& dy = ctx.dy();
  if (!dy.defined()) return;
  const Tensor distance = sub(ctx.input(0), ctx.input(1));
  if (ctx.needs(0)) set_unbroadcast(ctx, 0, mul(dy, sigmoid(distance)));
  if (ctx.needs(1)) set_unbroadcast(ctx, 1, mul(dy, sigmoid(neg(distance))));
}

// da = dy log b, 0 where a is 0 and b <= 0; db = dy a / b
void grad_xlogy(GradContext& ctx) {
  const Tensor& dy = ctx.dy();
  if (!dy.defined()) return;
  const Tensor a = ctx.input(0);
  const Tensor b = ctx.input(1);
  if (ctx.needs(0)) {
    const Tensor is_flat = logical_and(eq(a, 0), le(b, 0));
    set_unbroadcast(ctx, 0, masked_fill(xlogy(dy, b), is_flat, 0));
  }
  if (ctx.needs(1)) set_unbroadcast(ctx, 1, mul(dy, div(a, b)));
}

// da = dy a / y, db = dy b / y
void grad_hypot(GradContext& ctx) {
  const Tensor& dy = ctx.dy();
  if (!dy.defined()) return;
  const Tensor y = ctx.output();
  if (ctx.needs(0)) set_unbroadcast(ctx, 0, mul(dy, div(ctx.input(0), y)));
  if (ctx.needs(1)) set_unbroadcast(ctx, 1, mul(dy, div(ctx.input(1), y)));
}

double scalar_of(const GradContext& ctx) {
  return ctx.attrs<ScalarAttrs>().value.to<double>();
}

// dx = dy
void grad_add_scalar(GradContext& ctx) {
  ctx.set(0, ctx.dy());
}

// dx = -dy
void grad_rsub_scalar(GradContext& ctx) {
  if (ctx.dy().defined()) ctx.set(0, neg(ctx.dy()));
}

// dx = c dy
void grad_mul_scalar(GradContext& ctx) {
  if (ctx.dy().defined()) ctx.set(0, mul(ctx.dy(), ctx.attrs<ScalarAttrs>().value));
}

// dx = dy / c
void grad_div_scalar(GradContext& ctx) {
  if (ctx.dy().defined()) ctx.set(0, div(ctx.dy(), ctx.attrs<ScalarAttrs>().value));
}

// y = c / x: dx = -dy y / x
void grad_rdiv_scalar(GradContext& ctx) {
  if (ctx.dy().defined()) ctx.set(0, neg(div(mul(ctx.dy(), ctx.output()), ctx.input(0))));
}

// dx = dy c x^(c-1), 0 for c = 0
void grad_pow_scalar(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const double c = scalar_of(ctx);
  if (c != 0) ctx.set(0, mul(ctx.dy(), mul(pow(ctx.input(0), c - 1), c)));
}

// y = c^x: dx = dy y log c, 0 where c is 0 and x >= 0
void grad_rpow_scalar(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const double c = scalar_of(ctx);
  const Tensor dx = mul(mul(ctx.dy(), ctx.output()), std::log(c));
  ctx.set(0, c == 0 ? masked_fill(dx, ge(ctx.input(0), 0), 0) : dx);
}

// A step function: its derivative is zero wherever it exists
void grad_zero(GradContext& /*ctx*/) {}

// ---- the table

constexpr OpDef row(const char* name, InferFn infer, SbpFn sbp, GradFn grad,
                    uint32_t saved_inputs = 0, uint32_t saved_outputs = 0) {
  return {
      .name = name,
      .num_inputs = 2,
      .infer = infer,
      .sbp = sbp,
      .grad = grad,
      .saved_inputs = saved_inputs,
      .saved_outputs = saved_outputs,
      .allows_in_place = true,
  };
}

constexpr OpDef add_row(const char* name, InferFn infer, SbpFn sbp, GradFn grad) {
  OpDef op = row(name, infer, sbp, grad);
  op.attrs = attrs_def<AddAttrs>();
  return op;
}

constexpr OpDef scalar_row(const char* name, InferFn infer, SbpFn sbp, GradFn grad,
                           uint32_t saved_inputs = 0, uint32_t saved_outputs = 0) {
  OpDef op = row(name, infer, sbp, grad, saved_inputs, saved_outputs);
  op.num_inputs = 1;
  op.attrs = attrs_def<ScalarAttrs>();
  return op;
}

}  // namespace

void check_alpha(double alpha, const Tensor& a, const Tensor& b, const char* op) {
  if (is_floating(a.dtype()) || is_floating(b.dtype()) || alpha == std::trunc(alpha)) {
    return;
  }
  throw InvalidArgument(str("[", op, "] alpha is ", alpha, " but both tensors are ", a.dtype(),
                            " and ", b.dtype(),
                            "; give a whole number or cast to a floating dtype"));
}

const OpDef& rounded_division(const std::string& rounding_mode, const OpDef& trunc,
                              const OpDef& floor) {
  if (rounding_mode == "trunc") return trunc;
  if (rounding_mode == "floor") return floor;
  throw InvalidArgument(
      str("[div] rounding_mode is '", rounding_mode, "'; give trunc or floor, or leave it empty"));
}

void check_exponent(const Tensor& base, const Scalar& exponent, Site site) {
  if (is_floating(base.dtype()) || exponent.is_floating() || exponent.to<int64_t>() >= 0) return;
  throw InvalidArgument(str("[pow] a ", base.dtype(), " tensor to the negative power ", exponent,
                            " has no integer result; cast it to a floating dtype first"),
                        site);
}

void throw_division_by_zero() {
  throw InvalidArgument(
      "[div] an integer was divided by zero; mask zero divisors, or cast to a floating dtype");
}

// The inputs that a gradient reads: bit 0 is a, bit 1 is b. Then the outputs: bit 0 is y.
const OpDef kAdd = add_row("add", infer_any, sbp_add, grad_add);
const OpDef kSub = row("sub", infer_numbers, sbp_sum<true>, grad_sub);
const OpDef kMul = row("mul", infer_any, sbp_mul, grad_mul, 3);
const OpDef kDiv = row("div", infer_floating, sbp_first, grad_div, 2, 1);
const OpDef kPow = in_float32(row("pow", infer_numbers, elementwise_sbp, grad_pow, 3, 1));
const OpDef kFloorDivide = row("floor_divide", infer_numbers, elementwise_sbp, grad_zero);
const OpDef kTruncDivide = row("trunc_divide", infer_numbers, elementwise_sbp, grad_zero);
const OpDef kFmod = row("fmod", infer_numbers, elementwise_sbp, grad_rest<kTrunc>, 3);
const OpDef kRemainder = row("remainder", infer_numbers, elementwise_sbp, grad_rest<kFloor>, 3);
const OpDef kMaximum = row("maximum", infer_any, sbp_extremum<true>, grad_extremum<true>, 3);
const OpDef kMinimum = row("minimum", infer_any, sbp_extremum<false>, grad_extremum<false>, 3);
const OpDef kLogaddexp = row("logaddexp", infer_floating, sbp_rises, grad_logaddexp, 3);
const OpDef kXlogy = row("xlogy", infer_floating, sbp_first, grad_xlogy, 3);
const OpDef kHypot = row("hypot", infer_floating, elementwise_sbp, grad_hypot, 3, 1);

const OpDef kAddScalar =
    scalar_row("add_scalar", infer_scalar, arithmetic_sbp<kIncreasing>, grad_add_scalar);
const OpDef kSubScalar =
    scalar_row("sub_scalar", infer_scalar_numbers, arithmetic_sbp<kIncreasing>, grad_add_scalar);
const OpDef kRsubScalar =
    scalar_row("rsub_scalar", infer_scalar_numbers, arithmetic_sbp<kDecreasing>, grad_rsub_scalar);
const OpDef kMulScalar = scalar_row("mul_scalar", infer_scalar, sbp_scale, grad_mul_scalar);
const OpDef kDivScalar = scalar_row("div_scalar", infer_scalar, sbp_scale, grad_div_scalar);
const OpDef kRdivScalar =
    scalar_row("rdiv_scalar", infer_scalar, elementwise_sbp, grad_rdiv_scalar, 1, 1);
const OpDef kPowScalar =
    in_float32(scalar_row("pow_scalar", infer_scalar_numbers, sbp_pow_scalar, grad_pow_scalar, 1));
const OpDef kRpowScalar = in_float32(
    scalar_row("rpow_scalar", infer_scalar_numbers, sbp_rpow_scalar, grad_rpow_scalar, 1, 1));
const OpDef kFloorDivideScalar =
    scalar_row("floor_divide_scalar", infer_scalar_numbers, elementwise_sbp, grad_zero);
const OpDef kTruncDivideScalar =
    scalar_row("trunc_divide_scalar", infer_scalar_numbers, sbp_trunc_divide_scalar, grad_zero);
const OpDef kFmodScalar =
    scalar_row("fmod_scalar", infer_scalar_numbers, elementwise_sbp, grad_add_scalar);
const OpDef kRemainderScalar =
    scalar_row("remainder_scalar", infer_scalar_numbers, elementwise_sbp, grad_add_scalar);

void register_binary(OpTable& table) {
  for (const OpDef* op : {&kAdd,
                          &kSub,
                          &kMul,
                          &kDiv,
                          &kPow,
                          &kFloorDivide,
                          &kTruncDivide,
                          &kFmod,
                          &kRemainder,
                          &kMaximum,
                          &kMinimum,
                          &kLogaddexp,
                          &kXlogy,
                          &kHypot,
                          &kAddScalar,
                          &kSubScalar,
                          &kRsubScalar,
                          &kMulScalar,
                          &kDivScalar,
                          &kRdivScalar,
                          &kPowScalar,
                          &kRpowScalar,
                          &kFloorDivideScalar,
                          &kTruncDivideScalar,
                          &kFmodScalar,
                          &kRemainderScalar}) {
    table.add(*op);
  }
}

}  // namespace ops

// ---- functions

using ops::dispatch_promoted;
using ops::dispatch_scalar;
using ops::number_like;
using ops::Promotion;

namespace {

Scalar times(const Scalar& value, double factor) {
  if (factor == 1) return value;
  if (!value.is_floating() && factor == std::trunc(factor)) {
    return value.to<int64_t>() * static_cast<int64_t>(factor);
  }
  return value.to<double>() * factor;
}

// bool tensors are refused as in PyTorch, because the difference of truth values is not obvious.
void check_difference(const TensorArg& a, const TensorArg& b) {
  if (a->dtype() != DType::kBool && b->dtype() != DType::kBool) [[likely]]
    return;
  throw InvalidArgument(str("[sub] is not defined for bool; use logical_not, logical_xor or cast ",
                            "first; received ", a->meta(), ", ", b->meta()),
                        a.site());
}

}  // namespace

Tensor add(const TensorArg& a, const TensorArg& b) {
  return dispatch_promoted(ops::kAdd, a, b, ops::AddAttrs{});
}

Tensor add(const TensorArg& a, const TensorArg& b, const AddOptions& options) {
  ops::check_alpha(options.alpha, a, b, "add");
  return dispatch_promoted(ops::kAdd, a, b, ops::AddAttrs{options.alpha});
}

Tensor add(const TensorArg& a, const Scalar& b) {
  return dispatch_scalar(ops::kAddScalar, a, b);
}

Tensor add(const TensorArg& a, const Scalar& b, const AddOptions& options) {
  return add(a, times(b, options.alpha));
}

Tensor sub(const TensorArg& a, const TensorArg& b) {
  check_difference(a, b);
  return dispatch_promoted(ops::kSub, a, b);
}

Tensor sub(const TensorArg& a, const TensorArg& b, const AddOptions& options) {
  check_difference(a, b);
  ops::check_alpha(options.alpha, a, b, "sub");
  return dispatch_promoted(ops::kAdd, a, b, ops::AddAttrs{-options.alpha});
}

Tensor sub(const TensorArg& a, const Scalar& b) {
  check_difference(a, a);
  return dispatch_scalar(ops::kSubScalar, a, b);
}

Tensor sub(const TensorArg& a, const Scalar& b, const AddOptions& options) {
  check_difference(a, a);
  return add(a, times(b, -options.alpha));
}

Tensor mul(const TensorArg& a, const TensorArg& b) {
  return dispatch_promoted(ops::kMul, a, b);
}

Tensor mul(const TensorArg& a, const Scalar& b) {
  return dispatch_scalar(ops::kMulScalar, a, b);
}

Tensor div(const TensorArg& a, const TensorArg& b) {
  return dispatch_promoted(ops::kDiv, a, b, Promotion::kToFloating);
}

Tensor div(const TensorArg& a, const TensorArg& b, const DivOptions& options) {
  if (options.rounding_mode.empty()) return div(a, b);
  const OpDef& op =
      ops::rounded_division(options.rounding_mode, ops::kTruncDivide, ops::kFloorDivide);
  return ops::named("div", [&] { return dispatch_promoted(op, a, b); });
}

Tensor div(const TensorArg& a, const Scalar& b) {
  return dispatch_scalar(ops::kDivScalar, a, b, Promotion::kToFloating);
}

Tensor div(const TensorArg& a, const Scalar& b, const DivOptions& options) {
  if (options.rounding_mode.empty()) return div(a, b);
  const OpDef& op = ops::rounded_division(options.rounding_mode, ops::kTruncDivideScalar,
                                          ops::kFloorDivideScalar);
  return ops::named("div", [&] { return dispatch_scalar(op, a, b); });
}

Tensor pow(const TensorArg& a, const TensorArg& b) {
  return dispatch_promoted(ops::kPow, a, b);
}

Tensor pow(const TensorArg& a, const Scalar& b) {
  ops::check_exponent(a, b, a.site());
  return dispatch_scalar(ops::kPowScalar, a, b);
}

Tensor pow(const Scalar& a, const TensorArg& b) {
  return dispatch_scalar(ops::kRpowScalar, b, a);
}

Tensor floor_divide(const TensorArg& a, const TensorArg& b) {
  return dispatch_promoted(ops::kFloorDivide, a, b);
}

Tensor floor_divide(const TensorArg& a, const Scalar& b) {
  return dispatch_scalar(ops::kFloorDivideScalar, a, b);
}

Tensor fmod(const TensorArg& a, const TensorArg& b) {
  return dispatch_promoted(ops::kFmod, a, b);
}

Tensor fmod(const TensorArg& a, const Scalar& b) {
  return dispatch_scalar(ops::kFmodScalar, a, b);
}

Tensor remainder(const TensorArg& a, const TensorArg& b) {
  return dispatch_promoted(ops::kRemainder, a, b);
}

Tensor remainder(const TensorArg& a, const Scalar& b) {
  return dispatch_scalar(ops::kRemainderScalar, a, b);
}

Tensor logaddexp(const TensorArg& a, const TensorArg& b) {
  return dispatch_promoted(ops::kLogaddexp, a, b);
}

Tensor xlogy(const TensorArg& a, const TensorArg& b) {
  return dispatch_promoted(ops::kXlogy, a, b, Promotion::kToFloating);
}

Tensor xlogy(const TensorArg& a, const Scalar& b) {
  return xlogy(a, number_like(a, b));
}

Tensor hypot(const TensorArg& a, const TensorArg& b) {
  return dispatch_promoted(ops::kHypot, a, b);
}

Tensor maximum(const TensorArg& a, const TensorArg& b) {
  return dispatch_promoted(ops::kMaximum, a, b);
}

Tensor maximum(const TensorArg& a, const Scalar& b) {
  return maximum(a, number_like(a, b));
}

Tensor minimum(const TensorArg& a, const TensorArg& b) {
  return dispatch_promoted(ops::kMinimum, a, b);
}

Tensor minimum(const TensorArg& a, const Scalar& b) {
  return minimum(a, number_like(a, b));
}

}  // namespace flow
