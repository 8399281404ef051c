#include "ops/elementwise/where.h"

#include "core/dispatch.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/old_value.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where_op.h"
#include "ops/integer_range.h"
#include "ops/named_errors.h"
#include "ops/reduce/reduce.h"
#include "ops/sbp_rules.h"

namespace flow {

namespace ops {

namespace {

void check_condition(const InferContext& ctx, int i) {
  ctx.check(ctx.input(i).dtype == DType::kBool,
            "the condition must be bool; compare, or cast it first");
}

void infer_where(InferContext& ctx) {
  check_condition(ctx, 0);
  ctx.check(ctx.input(1).dtype == ctx.input(2).dtype,
            "dtypes differ; cast one, or call the public function, which promotes");
  const Shape values = broadcast_shapes(ctx.input(1).shape, ctx.input(2).shape, "where");
  ctx.add_output(broadcast_shapes(ctx.input(0).shape, values, "where"), ctx.input(1).dtype);
}

// If all ranks choose the same side, partial values pass. A whole tensor is its own maximum and
// minimum over ranks.
void sbp_where(SbpContext& ctx) {
  constexpr Sbp kB = sbp::broadcast;
  elementwise_sbp(ctx);
  ctx.add({kB, sbp::partial_sum, sbp::partial_sum}, {sbp::partial_sum});
  for (const Sbp side : {sbp::partial_max, sbp::partial_min}) {
    ctx.add({kB, side, side}, {side});
    ctx.add({kB, side, kB}, {side});
    ctx.add({kB, kB, side}, {side});
  }
}

// dx of an input that was broadcast: dx summed over the repeats.
void set_unbroadcast(GradContext& ctx, int i, const Tensor& dx) {
  const Shape& shape = ctx.input_meta(i)->shape;
  ctx.set(i, dx.shape() == shape ? dx : sum_to(dx, shape));
}

// da = dy where the condition holds, db = dy where it does not; 0 elsewhere
void grad_where(GradContext& ctx) {
  const Tensor& dy = ctx.dy();
  if (!dy.defined()) return;
  const Tensor condition = ctx.input(0);
  if (ctx.needs(1)) set_unbroadcast(ctx, 1, masked_fill(dy, logical_not(condition), 0));
  if (ctx.needs(2)) set_unbroadcast(ctx, 2, masked_fill(dy, condition, 0));
}

void infer_masked_fill(InferContext& ctx) {
  check_condition(ctx, 1);
  ctx.add_output(broadcast_shapes(ctx.input(0).shape, ctx.input(1).shape, "masked_fill"),
                 ctx.input(0).dtype);
}

// As where with a number: a number is its own maximum and minimum, and only 0 is its own sum.
void sbp_masked_fill(SbpContext& ctx) {
  elementwise_sbp(ctx);
  for (const Sbp side : {sbp::partial_max, sbp::partial_min}) {
    ctx.add({side, sbp::broadcast}, {side});
  }
  if (ctx.attrs<ScalarAttrs>().value.to<double>() == 0) {
    ctx.add({sbp::partial_sum, sbp::broadcast}, {sbp::partial_sum});
  }
}

// dx = dy where the mask does not hold, else 0
void grad_masked_fill(GradContext& ctx) {
  if (!ctx.dy().defined() || !ctx.needs(0)) return;
  set_unbroadcast(ctx, 0, masked_fill(ctx.dy(), ctx.input(1), 0));
}

void infer_like_first(InferContext& ctx) {
  ctx.add_output_like(0);
}

// dx = dy where min < x < max, else 0
void grad_clamp(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const Tensor x = ctx.input(0);
  ctx.set(0, dispatch(kClampGrad, {&ctx.dy(), &x}, ctx.attrs<ClampAttrs>(), Site::here()));
}

// The result is dy or zero, the same choice on all ranks.
void sbp_clamp_grad(SbpContext& ctx) {
  elementwise_sbp(ctx);
  for (const Sbp partial : {sbp::partial_sum, sbp::partial_max, sbp::partial_min})
    ctx.add({partial, sbp::broadcast}, {partial});
}

// Linear in dy, a step function in x: ddy = dz where min < x < max, dx = 0
void grad_clamp_grad(GradContext& ctx) {
  if (!ctx.dy().defined() || !ctx.needs(0)) return;
  const Tensor x = ctx.input(1);
  ctx.set(0, dispatch(kClampGrad, {&ctx.dy(), &x}, ctx.attrs<ClampAttrs>(), Site::here()));
}

}  // namespace

const OpDef kWhere = {
    .name = "where",
    .num_inputs = 3,
    .infer = infer_where,
    .sbp = sbp_where,
    .grad = grad_where,
    .saved_inputs = 1,
};

const OpDef kMaskedFill = {
    .name = "masked_fill",
    .num_inputs = 2,
    .attrs = attrs_def<ScalarAttrs>(),
    .infer = infer_masked_fill,
    .sbp = sbp_masked_fill,
    .grad = grad_masked_fill,
    .saved_inputs = 2,
    .allows_in_place = true,
};

const OpDef kClamp = {
    .name = "clamp",
    .attrs = attrs_def<ClampAttrs>(),
    .infer = infer_like_first,
    .sbp = unary_sbp<kIncreasing>,
    .grad = grad_clamp,
    .saved_inputs = 1,
    .allows_in_place = true,
};

const OpDef kClampGrad = {
    .name = "clamp_grad",
    .num_inputs = 2,
    .attrs = attrs_def<ClampAttrs>(),
    .infer = infer_like_first,
    .sbp = sbp_clamp_grad,
    .grad = grad_clamp_grad,
    .saved_inputs = 2,
};

void register_where(OpTable& table) {
  table.add(kWhere);
  table.add(kMaskedFill);
  table.add(kClamp);
  table.add(kClampGrad);
}

}  // namespace ops

namespace {

// The dtype of the result must be able to hold a bound that always binds.
void check_bounds(const TensorArg& x, DType dtype, const ClampOptions& options) {
  const auto check = [&](bool binds, const std::optional<Scalar>& bound) {
    if (!bound || !binds || ops::holds_number(dtype, *bound)) return;
    throw InvalidArgument(str("[clamp] no ", dtype, " value is within the bound ", *bound,
                              "; give another one, or cast the tensor"),
                          x.site());
  };
  check(options.min && options.min->to<int64_t>() > 0, options.min);
  check(options.max && options.max->to<int64_t>() < 0, options.max);
}

// The dtype of clamp's result: bounds of a higher category raise it.
DType clamped_dtype(const TensorArg& x, const ClampOptions& options) {
  if (!options.min && !options.max) {
    throw InvalidArgument("[clamp] neither min nor max was given; give at least one", x.site());
  }
  DType dtype = x->dtype();
  if (options.min) dtype = promote(dtype, *options.min);
  if (options.max) dtype = promote(dtype, *options.max);
  if (is_integral(dtype)) check_bounds(x, dtype, options);
  return dtype;
}

void check_bool(const TensorArg& condition) {
  if (condition->dtype() == DType::kBool) return;
  throw InvalidArgument(str("[where] the condition must be bool; received ", condition->meta(),
                            "; compare, or cast it first"),
                        condition.site());
}

// Integers take the part of a value before the point.
void check_fill(const TensorArg& x, const Scalar& value) {
  ops::check_fill_value(x->dtype(), value, "masked_fill", x.site());
}

Tensor clamp_between(const TensorArg& x, const TensorArg& min, const TensorArg& max) {
  const Site site = x.site();
  Tensor y = x;
  if (min->defined()) y = where({logical_or(lt(x, min), isnan(min)), site}, min, {y, site});
  if (max->defined()) {
    const TensorArg raised(y, site);
    Tensor clamped = where({logical_or(gt(raised, max), isnan(max)), site}, max, raised);
    return clamped;
  }
  return y;
}

}  // namespace

Tensor where(const TensorArg& condition, const TensorArg& a, const TensorArg& b) {
  const DType dtype = ops::result_dtype(a, b);
  if (a->dtype() == dtype && b->dtype() == dtype) [[likely]] {
    return dispatch(ops::kWhere, {&condition.tensor(), &a.tensor(), &b.tensor()}, condition.site());
  }
  const Tensor left = cast(a, dtype);
  const Tensor right = cast(b, dtype);
  return dispatch(ops::kWhere, {&condition.tensor(), &left, &right}, condition.site());
}

Tensor where(const TensorArg& condition, const TensorArg& a, const Scalar& b) {
  check_bool(condition);
  const Tensor values = cast(a, promote(a->dtype(), b));
  return ops::named("where", [&] {
    return masked_fill(TensorArg(values, condition.site()), logical_not(condition), b);
  });
}

Tensor where(const TensorArg& condition, const Scalar& a, const TensorArg& b) {
  check_bool(condition);
  const Tensor values = cast(b, promote(b->dtype(), a));
  return ops::named("where",
                    [&] { return masked_fill(TensorArg(values, condition.site()), condition, a); });
}

Tensor where(const TensorArg& condition, const Scalar& a, const Scalar& b) {
  check_bool(condition);
  const DType dtype = promote(promote(DType::kBool, a), b);
  const Tensor values = full_like(condition, b, {.dtype = dtype});
  return masked_fill({values, condition.site()}, condition, a);
}

Tensor masked_fill(const TensorArg& x, const TensorArg& mask, const TensorArg& value) {
  if (value->dim() != 0) {
    throw InvalidArgument(str("[masked_fill] the value has shape ", value->shape(),
                              "; give a number or a tensor without dims, or use where"),
                          x.site());
  }
  return ops::named("masked_fill", [&] {
    return where({mask, x.site()}, cast(value, x->dtype()), x);
  });
}

Tensor masked_fill(const TensorArg& x, const TensorArg& mask, const Scalar& value) {
  check_fill(x, value);
  return dispatch(ops::kMaskedFill, {&x.tensor(), &mask.tensor()}, ops::ScalarAttrs{value},
                  x.site());
}

const Tensor& masked_fill_(const TensorArg& x, const TensorArg& mask, const Scalar& value) {
  return ops::named("masked_fill_", [&]() -> const Tensor& {
    check_fill(x, value);
    const ops::ScalarAttrs attrs{value};
    dispatch_in_place(ops::kMaskedFill, {&x.tensor(), &mask.tensor()}, &attrs, x.site());
    return x;
  });
}

Tensor clamp(const TensorArg& x, const ClampOptions& options) {
  const ops::ClampAttrs attrs{options.min, options.max};
  const DType dtype = clamped_dtype(x, options);
  if (x->dtype() == dtype) [[likely]]
    return dispatch(ops::kClamp, {&x.tensor()}, attrs, x.site());
  const Tensor operand = cast(x, dtype);
  return dispatch(ops::kClamp, {&operand}, attrs, x.site());
}

Tensor clamp(const TensorArg& x, const TensorArg& min, const TensorArg& max) {
  if (!min->defined() && !max->defined()) {
    throw InvalidArgument("[clamp] neither min nor max was given; give at least one", x.site());
  }
  return ops::named("clamp", [&] { return clamp_between(x, min, max); });
}

Tensor clip(const TensorArg& x, const ClampOptions& options) {
  return ops::named("clip", [&]() -> Tensor { return clamp(x, options); });
}

const Tensor& clamp_(const TensorArg& x, const ClampOptions& options) {
  if (ops::named("clamp_", [&] { return clamped_dtype(x, options); }) != x->dtype()) {
    throw InvalidArgument(str("[clamp_] floating bounds do not fit into a tensor of ", x->dtype(),
                              "; use clamp, or give integers"),
                          x.site());
  }
  const ops::ClampAttrs attrs{options.min, options.max};
  if (ops::reads_old_value(ops::kClamp, {&x.tensor()})) {
    return ops::write_from_copy(x, [&](const TensorArg& old) {
      return dispatch(ops::kClamp, {&old.tensor()}, attrs, x.site());
    });
  }
  dispatch_in_place(ops::kClamp, {&x.tensor()}, &attrs, x.site());
  return x;
}

const Tensor& InPlaceMethods::clamp_(const ClampOptions& options, Site site) const {
  flow::clamp_(TensorArg(self(), site), options);
  return self();
}

const Tensor& InPlaceMethods::masked_fill_(const TensorArg& mask, const Scalar& value) const {
  flow::masked_fill_(TensorArg(self(), mask.site()), mask, value);
  return self();
}

Tensor PointwiseMethods::clamp(const ClampOptions& options, Site site) const {
  return flow::clamp(TensorArg(self(), site), options);
}

Tensor PointwiseMethods::clamp(const TensorArg& min, const TensorArg& max) const {
  return flow::clamp(TensorArg(self(), min.site()), min, max);
}

Tensor PointwiseMethods::clip(const ClampOptions& options, Site site) const {
  return flow::clip(TensorArg(self(), site), options);
}

Tensor IndexMethods::masked_fill(const TensorArg& mask, const Scalar& value) const {
  return flow::masked_fill(TensorArg(self(), mask.site()), mask, value);
}

Tensor IndexMethods::masked_fill(const TensorArg& mask, const TensorArg& value) const {
  return flow::masked_fill(TensorArg(self(), mask.site()), mask, value);
}

Tensor IndexMethods::where(const TensorArg& condition, const TensorArg& other) const {
  return flow::where(condition, TensorArg(self(), condition.site()), other);
}

Tensor IndexMethods::where(const TensorArg& condition, const Scalar& other) const {
  return flow::where(condition, TensorArg(self(), condition.site()), other);
}

}  // namespace flow
