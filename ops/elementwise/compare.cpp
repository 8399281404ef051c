#include "ops/elementwise/compare.h"

#include "core/dispatch.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare_op.h"
#include "ops/elementwise/unary.h"
#include "ops/integer_range.h"
#include "ops/named_errors.h"
#include "ops/promotion.h"
#include "ops/reduce/reduce.h"
#include "ops/sbp_rules.h"

namespace flow {

namespace ops {

namespace {

void infer_pair(InferContext& ctx) {
  ctx.check(ctx.input(0).dtype == ctx.input(1).dtype,
            "dtypes differ; cast one, or call the public function, which promotes");
  ctx.add_output(broadcast_shapes(ctx.input(0).shape, ctx.input(1).shape, ctx.op().name),
                 DType::kBool);
}

void infer_scalar(InferContext& ctx) {
  ctx.add_output(ctx.input(0).shape, DType::kBool);
}

// "a < b" as 0 or 1 falls in a and rises in b; "a > b" does the reverse.
// For bools, "a < b" is "b and not a", and so on. kIsAnd: the minimum of both passes at once.
template <bool kRisesInA, bool kIsAnd>
void sbp_order(SbpContext& ctx) {
  elementwise_sbp(ctx);
  for (const Sbp side : {sbp::partial_max, sbp::partial_min}) {
    const Sbp other = side == sbp::partial_max ? sbp::partial_min : sbp::partial_max;
    ctx.add({side, sbp::broadcast}, {kRisesInA ? side : other});
    ctx.add({sbp::broadcast, side}, {kRisesInA ? other : side});
  }
  if (ctx.input(0).dtype == DType::kBool) {
    const Sbp out = kIsAnd ? sbp::partial_min : sbp::partial_max;
    const Sbp turned = kIsAnd ? sbp::partial_max : sbp::partial_min;
    ctx.add({kRisesInA ? out : turned, kRisesInA ? turned : out}, {out});
  }
}

// For bools, "and" is the minimum and "or" the maximum; both rise in each argument.
template <bool kIsAnd>
void sbp_logical(SbpContext& ctx) {
  elementwise_sbp(ctx);
  if (ctx.input(0).dtype != DType::kBool) return;
  const Sbp own = kIsAnd ? sbp::partial_min : sbp::partial_max;
  ctx.add({own, own}, {own});
  for (const Sbp side : {sbp::partial_max, sbp::partial_min}) {
    ctx.add({side, sbp::broadcast}, {side});
    ctx.add({sbp::broadcast, side}, {side});
  }
}

constexpr OpDef row(const char* name, SbpFn sbp) {
  return {
      .name = name,
      .num_inputs = 2,
      .infer = infer_pair,
      .sbp = sbp,
      .grad = not_differentiable,
  };
}

constexpr OpDef scalar_row(const char* name, SbpFn sbp) {
  return {
      .name = name,
      .attrs = attrs_def<ScalarAttrs>(),
      .infer = infer_scalar,
      .sbp = sbp,
      .grad = not_differentiable,
  };
}

}  // namespace

const OpDef kEq = row("eq", elementwise_sbp);
const OpDef kNe = row("ne", elementwise_sbp);
const OpDef kLt = row("lt", sbp_order<false, true>);
const OpDef kLe = row("le", sbp_order<false, false>);
const OpDef kGt = row("gt", sbp_order<true, true>);
const OpDef kGe = row("ge", sbp_order<true, false>);
const OpDef kLogicalAnd = row("logical_and", sbp_logical<true>);
const OpDef kLogicalOr = row("logical_or", sbp_logical<false>);
const OpDef kLogicalXor = row("logical_xor", elementwise_sbp);
const OpDef kEqScalar = scalar_row("eq_scalar", elementwise_sbp);
const OpDef kNeScalar = scalar_row("ne_scalar", elementwise_sbp);
const OpDef kLtScalar = scalar_row("lt_scalar", unary_sbp<kDecreasing>);
const OpDef kLeScalar = scalar_row("le_scalar", unary_sbp<kDecreasing>);
const OpDef kGtScalar = scalar_row("gt_scalar", unary_sbp<kIncreasing>);
const OpDef kGeScalar = scalar_row("ge_scalar", unary_sbp<kIncreasing>);

void register_compare(OpTable& table) {
  for (const OpDef* op :
       {&kEq, &kNe, &kLt, &kLe, &kGt, &kGe, &kLogicalAnd, &kLogicalOr, &kLogicalXor, &kEqScalar,
        &kNeScalar, &kLtScalar, &kLeScalar, &kGtScalar, &kGeScalar}) {
    table.add(*op);
  }
}

}  // namespace ops

using ops::dispatch_promoted;

namespace {

// int64 holds the numbers that x's dtype does not hold, and it holds x.
Tensor compare_scalar(const OpDef& op, const TensorArg& x, const Scalar& number) {
  const bool is_wide = !number.is_floating() && !ops::holds_number(x->dtype(), number);
  return ops::dispatch_scalar(op, is_wide ? TensorArg(cast(x, DType::kInt64), x.site()) : x,
                              number);
}

}  // namespace

Tensor eq(const TensorArg& a, const TensorArg& b) {
  return dispatch_promoted(ops::kEq, a, b);
}

Tensor eq(const TensorArg& a, const Scalar& b) {
  return compare_scalar(ops::kEqScalar, a, b);
}

Tensor ne(const TensorArg& a, const TensorArg& b) {
  return dispatch_promoted(ops::kNe, a, b);
}

Tensor ne(const TensorArg& a, const Scalar& b) {
  return compare_scalar(ops::kNeScalar, a, b);
}

Tensor lt(const TensorArg& a, const TensorArg& b) {
  return dispatch_promoted(ops::kLt, a, b);
}

Tensor lt(const TensorArg& a, const Scalar& b) {
  return compare_scalar(ops::kLtScalar, a, b);
}

Tensor le(const TensorArg& a, const TensorArg& b) {
  return dispatch_promoted(ops::kLe, a, b);
}

Tensor le(const TensorArg& a, const Scalar& b) {
  return compare_scalar(ops::kLeScalar, a, b);
}

Tensor gt(const TensorArg& a, const TensorArg& b) {
  return dispatch_promoted(ops::kGt, a, b);
}

Tensor gt(const TensorArg& a, const Scalar& b) {
  return compare_scalar(ops::kGtScalar, a, b);
}

Tensor ge(const TensorArg& a, const TensorArg& b) {
  return dispatch_promoted(ops::kGe, a, b);
}

Tensor ge(const TensorArg& a, const Scalar& b) {
  return compare_scalar(ops::kGeScalar, a, b);
}

Tensor logical_and(const TensorArg& a, const TensorArg& b) {
  return dispatch_promoted(ops::kLogicalAnd, a, b);
}

Tensor logical_or(const TensorArg& a, const TensorArg& b) {
  return dispatch_promoted(ops::kLogicalOr, a, b);
}

Tensor logical_xor(const TensorArg& a, const TensorArg& b) {
  return dispatch_promoted(ops::kLogicalXor, a, b);
}

Tensor isclose(const TensorArg& a, const TensorArg& b, const CloseOptions& options) {
  return ops::named("isclose", [&]() -> Tensor {
    const Site site = a.site();
    if (a->dtype() != b->dtype()) {
      throw InvalidArgument(str("[isclose] the tensors must have one dtype; received ", a->meta(),
                                " and ", b->meta(), "; cast one of them"),
                            site);
    }
    if (a->dtype() == DType::kBool) return eq(a, b);
    const Tensor distance = abs({sub(a, b), site});
    const Tensor allowed = add({mul({abs(b), site}, options.rtol), site}, options.atol);
    const Tensor is_near = logical_and({isfinite(distance), site}, le({distance, site}, allowed));
    Tensor is_close = logical_or({is_near, site}, eq(a, b));
    if (!options.equal_nan) return is_close;
    return logical_or({is_close, site}, logical_and({isnan(a), site}, isnan(b)));
  });
}

bool allclose(const TensorArg& a, const TensorArg& b, const CloseOptions& options) {
  return ops::named("allclose", [&]() -> bool {
    return all({isclose(a, b, options), a.site()}).item<bool>(a.site());
  });
}

bool equal(const TensorArg& a, const TensorArg& b) {
  return ops::named("equal", [&]() -> bool {
    return a->shape() == b->shape() && all({eq(a, b), a.site()}).item<bool>(a.site());
  });
}

Tensor PointwiseMethods::eq(const TensorArg& other) const {
  return flow::eq(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::eq(const Scalar& other, Site site) const {
  return flow::eq(TensorArg(self(), site), other);
}

Tensor PointwiseMethods::ne(const TensorArg& other) const {
  return flow::ne(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::ne(const Scalar& other, Site site) const {
  return flow::ne(TensorArg(self(), site), other);
}

Tensor PointwiseMethods::lt(const TensorArg& other) const {
  return flow::lt(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::lt(const Scalar& other, Site site) const {
  return flow::lt(TensorArg(self(), site), other);
}

Tensor PointwiseMethods::le(const TensorArg& other) const {
  return flow::le(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::le(const Scalar& other, Site site) const {
  return flow::le(TensorArg(self(), site), other);
}

Tensor PointwiseMethods::gt(const TensorArg& other) const {
  return flow::gt(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::gt(const Scalar& other, Site site) const {
  return flow::gt(TensorArg(self(), site), other);
}

Tensor PointwiseMethods::ge(const TensorArg& other) const {
  return flow::ge(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::ge(const Scalar& other, Site site) const {
  return flow::ge(TensorArg(self(), site), other);
}

Tensor PointwiseMethods::logical_and(const TensorArg& other) const {
  return flow::logical_and(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::logical_or(const TensorArg& other) const {
  return flow::logical_or(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::logical_xor(const TensorArg& other) const {
  return flow::logical_xor(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::isclose(const TensorArg& other, const CloseOptions& options) const {
  return flow::isclose(TensorArg(self(), other.site()), other, options);
}

bool PointwiseMethods::allclose(const TensorArg& other, const CloseOptions& options) const {
  return flow::allclose(TensorArg(self(), other.site()), other, options);
}

bool PointwiseMethods::equal(const TensorArg& other) const {
  return flow::equal(TensorArg(self(), other.site()), other);
}

}  // namespace flow
