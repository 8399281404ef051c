// Rows of the tables of unary and binary functions, written in place.
#include "ops/elementwise/in_place.h"

#include "core/dispatch.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/binary_op.h"
#include "ops/elementwise/old_value.h"
#include "ops/elementwise/trigonometry_op.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/unary_op.h"
#include "ops/elementwise/where.h"
#include "ops/named_errors.h"
#include "ops/promotion.h"
#include "ops/shape/concat.h"

namespace flow {

using ops::dispatch_promoted_in_place;
using ops::dispatch_scalar_in_place;

namespace {

const Tensor& run_in_place(const OpDef& op, const TensorArg& x) {
  return ops::named_in_place(op, [&]() -> const Tensor& {
    if (ops::reads_old_value(op, {&x.tensor()})) {
      return ops::write_from_copy(
          x, [&](const TensorArg& old) { return dispatch(op, {&old.tensor()}, x.site()); });
    }
    dispatch_in_place(op, {&x.tensor()}, nullptr, x.site());
    return x;
  });
}

const Tensor& run_in_place(const OpDef& op, const TensorArg& x, const TensorArg& b) {
  return ops::named_in_place(op, [&]() -> const Tensor& {
    if (is_floating(x->dtype()) && ops::reads_old_value(op, {&x.tensor(), &b.tensor()})) {
      return ops::write_from_copy(
          x, [&](const TensorArg& old) { return ops::dispatch_promoted(op, old, b); });
    }
    dispatch_promoted_in_place(op, TensorArg(x, b.site()), b, nullptr);
    return x;
  });
}

const Tensor& run_in_place(const OpDef& op, const TensorArg& x, const Scalar& b) {
  return ops::named_in_place(op, [&]() -> const Tensor& {
    if (is_floating(x->dtype()) && ops::reads_old_value(op, {&x.tensor()})) {
      return ops::write_from_copy(
          x, [&](const TensorArg& old) { return ops::dispatch_scalar(op, old, b); });
    }
    dispatch_scalar_in_place(op, x, b, x.site());
    return x;
  });
}

}  // namespace

const Tensor& neg_(const TensorArg& x) {
  return run_in_place(ops::kNeg, x);
}

const Tensor& abs_(const TensorArg& x) {
  return run_in_place(ops::kAbs, x);
}

const Tensor& sign_(const TensorArg& x) {
  return run_in_place(ops::kSign, x);
}

const Tensor& square_(const TensorArg& x) {
  return run_in_place(ops::kSquare, x);
}

const Tensor& floor_(const TensorArg& x) {
  return run_in_place(ops::kFloor, x);
}

const Tensor& ceil_(const TensorArg& x) {
  return run_in_place(ops::kCeil, x);
}

const Tensor& round_(const TensorArg& x) {
  return run_in_place(ops::kRound, x);
}

const Tensor& trunc_(const TensorArg& x) {
  return run_in_place(ops::kTrunc, x);
}

const Tensor& frac_(const TensorArg& x) {
  return run_in_place(ops::kFrac, x);
}

const Tensor& exp_(const TensorArg& x) {
  return run_in_place(ops::kExp, x);
}

const Tensor& exp2_(const TensorArg& x) {
  return run_in_place(ops::kExp2, x);
}

const Tensor& expm1_(const TensorArg& x) {
  return run_in_place(ops::kExpm1, x);
}

const Tensor& log_(const TensorArg& x) {
  return run_in_place(ops::kLog, x);
}

const Tensor& log2_(const TensorArg& x) {
  return run_in_place(ops::kLog2, x);
}

const Tensor& log10_(const TensorArg& x) {
  return run_in_place(ops::kLog10, x);
}

const Tensor& log1p_(const TensorArg& x) {
  return run_in_place(ops::kLog1p, x);
}

const Tensor& sqrt_(const TensorArg& x) {
  return run_in_place(ops::kSqrt, x);
}

const Tensor& rsqrt_(const TensorArg& x) {
  return run_in_place(ops::kRsqrt, x);
}

const Tensor& reciprocal_(const TensorArg& x) {
  return run_in_place(ops::kReciprocal, x);
}

const Tensor& sin_(const TensorArg& x) {
  return run_in_place(ops::kSin, x);
}

const Tensor& cos_(const TensorArg& x) {
  return run_in_place(ops::kCos, x);
}

const Tensor& tan_(const TensorArg& x) {
  return run_in_place(ops::kTan, x);
}

const Tensor& tanh_(const TensorArg& x) {
  return run_in_place(ops::kTanh, x);
}

const Tensor& erf_(const TensorArg& x) {
  return run_in_place(ops::kErf, x);
}

const Tensor& erfc_(const TensorArg& x) {
  return run_in_place(ops::kErfc, x);
}

const Tensor& sigmoid_(const TensorArg& x) {
  return run_in_place(ops::kSigmoid, x);
}

const Tensor& silu_(const TensorArg& x) {
  return run_in_place(ops::kSilu, x);
}

const Tensor& fmod_(const TensorArg& x, const TensorArg& b) {
  return run_in_place(ops::kFmod, x, b);
}

const Tensor& fmod_(const TensorArg& x, const Scalar& b) {
  return run_in_place(ops::kFmodScalar, x, b);
}

const Tensor& remainder_(const TensorArg& x, const TensorArg& b) {
  return run_in_place(ops::kRemainder, x, b);
}

const Tensor& remainder_(const TensorArg& x, const Scalar& b) {
  return run_in_place(ops::kRemainderScalar, x, b);
}

const Tensor& floor_divide_(const TensorArg& x, const TensorArg& b) {
  return run_in_place(ops::kFloorDivide, x, b);
}

const Tensor& floor_divide_(const TensorArg& x, const Scalar& b) {
  return run_in_place(ops::kFloorDivideScalar, x, b);
}

const Tensor& tril_(const TensorArg& x, int64_t diagonal) {
  return ops::named("tril_", [&]() -> const Tensor& {
    return x->copy_({tril(x, diagonal), x.site()});
  });
}

const Tensor& triu_(const TensorArg& x, int64_t diagonal) {
  return ops::named("triu_", [&]() -> const Tensor& {
    return x->copy_({triu(x, diagonal), x.site()});
  });
}

const Tensor& sub_(const TensorArg& x, const TensorArg& b, const AddOptions& options) {
  return ops::named("sub_",
                    [&]() -> const Tensor& { return x->add_(b, {.alpha = -options.alpha}); });
}

const Tensor& div_(const TensorArg& x, const TensorArg& b, const DivOptions& options) {
  if (options.rounding_mode.empty()) return x->div_(b);
  const OpDef& op =
      ops::rounded_division(options.rounding_mode, ops::kTruncDivide, ops::kFloorDivide);
  return ops::named("div_", [&]() -> const Tensor& { return run_in_place(op, x, b); });
}

const Tensor& div_(const TensorArg& x, const Scalar& b, const DivOptions& options) {
  if (options.rounding_mode.empty()) return x->div_(b, x.site());
  const OpDef& op = ops::rounded_division(options.rounding_mode, ops::kTruncDivideScalar,
                                          ops::kFloorDivideScalar);
  return ops::named("div_", [&]() -> const Tensor& { return run_in_place(op, x, b); });
}

const Tensor& pow_(const TensorArg& x, const TensorArg& exponent) {
  return run_in_place(ops::kPow, x, exponent);
}

const Tensor& pow_(const TensorArg& x, const Scalar& exponent) {
  ops::check_exponent(x, exponent, x.site());
  return run_in_place(ops::kPowScalar, x, exponent);
}

const Tensor& clamp_min_(const TensorArg& x, const Scalar& min) {
  return clamp_(x, {.min = min});
}

const Tensor& clamp_max_(const TensorArg& x, const Scalar& max) {
  return clamp_(x, {.max = max});
}

}  // namespace flow
