// Functions of two operands, written in place.
#include "ops/elementwise/in_place.h"

#include "core/dispatch.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/binary_op.h"
#include "ops/elementwise/old_value.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/named_errors.h"
#include "ops/promotion.h"
#include "ops/shape/concat.h"

namespace flow {

using ops::dispatch_promoted_in_place;
using ops::dispatch_scalar_in_place;

namespace {

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
