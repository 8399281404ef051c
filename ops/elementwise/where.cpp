#include "ops/elementwise/where.h"

#include <array>
#include <cmath>
#include <limits>

#include "core/dispatch.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/old_value.h"
#include "ops/elementwise/row_table.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where_op.h"
#include "ops/named_errors.h"
#include "ops/number_range.h"

namespace flow {

namespace ops {

Tensor clamp_grad(const Tensor& dy, const Tensor& x, const ClampAttrs& attrs) {
  return dispatch(op_of<ClampGrad>(), {&dy, &x}, attrs, Site::here());
}

void register_where(OpTable& table) {
  add_ops(table, ChoiceRows());
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

bool is_nan(const std::optional<Scalar>& bound) {
  return bound && bound->is_floating() && std::isnan(bound->to<double>());
}

// A bound that is NaN makes every element NaN.
bool has_nan(const ClampOptions& options) {
  return is_nan(options.min) || is_nan(options.max);
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

// A value that equals its bound shares the gradient with it, as in maximum and minimum.
Tensor clamp_between(const TensorArg& x, const TensorArg& min, const TensorArg& max) {
  if (min.defined() && max.defined()) {
    const std::array<const Tensor*, 3> operands{&x.tensor(), &min.tensor(), &max.tensor()};
    const DType dtype = ops::result_dtype(operands);
    const Tensor raised = maximum({cast(x, dtype), x.site()}, {cast(min, dtype), min.site()});
    return minimum({raised, x.site()}, {cast(max, dtype), max.site()});
  }
  return min.defined() ? maximum(x, min) : minimum(x, max);
}

}  // namespace

Tensor where(const TensorArg& condition, const TensorArg& a, const TensorArg& b) {
  const DType dtype = ops::result_dtype(a, b);
  if (a->dtype() == dtype && b->dtype() == dtype) [[likely]] {
    return dispatch(ops::op_of<ops::Where>(), {&condition.tensor(), &a.tensor(), &b.tensor()},
                    condition.site());
  }
  const Tensor left = cast(a, dtype);
  const Tensor right = cast(b, dtype);
  return dispatch(ops::op_of<ops::Where>(), {&condition.tensor(), &left, &right}, condition.site());
}

Tensor where(const TensorArg& condition, const TensorArg& a, const Scalar& b) {
  check_bool(condition);
  const Tensor values = cast(a, promote(a->dtype(), b));
  return ops::named("where", condition.site(), [&] {
    return masked_fill(TensorArg(values, condition.site()), logical_not(condition), b);
  });
}

Tensor where(const TensorArg& condition, const Scalar& a, const TensorArg& b) {
  check_bool(condition);
  const Tensor values = cast(b, promote(b->dtype(), a));
  return ops::named("where", condition.site(),
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
  return ops::named("masked_fill", x.site(), [&] {
    return where({mask, x.site()}, cast(value, x->dtype()), x);
  });
}

Tensor masked_fill(const TensorArg& x, const TensorArg& mask, const Scalar& value) {
  check_fill(x, value);
  return dispatch(ops::op_of<ops::MaskedFill>(), {&x.tensor(), &mask.tensor()},
                  ops::ScalarAttrs{value}, x.site());
}

const Tensor& masked_fill_(const TensorArg& x, const TensorArg& mask, const Scalar& value) {
  return ops::named("masked_fill_", x.site(), [&]() -> const Tensor& {
    check_fill(x, value);
    const ops::ScalarAttrs attrs{value};
    dispatch_in_place(ops::op_of<ops::MaskedFill>(), {&x.tensor(), &mask.tensor()}, &attrs,
                      x.site());
    return x;
  });
}

Tensor clamp(const TensorArg& x, const ClampOptions& options) {
  if (has_nan(options)) {
    return ops::named("clamp", x.site(), [&] {
      return add({mul(x, 0), x.site()}, std::numeric_limits<double>::quiet_NaN());
    });
  }
  const ops::ClampAttrs attrs{options.min, options.max};
  const DType dtype = clamped_dtype(x, options);
  if (x->dtype() == dtype) [[likely]]
    return dispatch(ops::op_of<ops::Clamp>(), {&x.tensor()}, attrs, x.site());
  const Tensor operand = cast(x, dtype);
  return dispatch(ops::op_of<ops::Clamp>(), {&operand}, attrs, x.site());
}

Tensor clamp(const TensorArg& x, const TensorArg& min, const TensorArg& max) {
  if (!min.defined() && !max.defined()) {
    throw InvalidArgument("[clamp] neither min nor max was given; give at least one", x.site());
  }
  return ops::named("clamp", x.site(), [&] { return clamp_between(x, min, max); });
}

Tensor clamp(const TensorArg& x, const Scalar& min, const Scalar& max) {
  return clamp(x, {.min = min, .max = max});
}

Tensor clamp_min(const TensorArg& x, const Scalar& min) {
  return ops::named("clamp_min", x.site(), [&]() -> Tensor { return clamp(x, {.min = min}); });
}

Tensor clamp_min(const TensorArg& x, const TensorArg& min) {
  return ops::named("clamp_min", x.site(), [&]() -> Tensor { return clamp(x, min, Tensor()); });
}

Tensor clamp_max(const TensorArg& x, const Scalar& max) {
  return ops::named("clamp_max", x.site(), [&]() -> Tensor { return clamp(x, {.max = max}); });
}

Tensor clamp_max(const TensorArg& x, const TensorArg& max) {
  return ops::named("clamp_max", x.site(), [&]() -> Tensor { return clamp(x, Tensor(), max); });
}

Tensor clip(const TensorArg& x, const ClampOptions& options) {
  return ops::named("clip", x.site(), [&]() -> Tensor { return clamp(x, options); });
}

const Tensor& clamp_(const TensorArg& x, const ClampOptions& options) {
  if (ops::named("clamp_", x.site(), [&] { return clamped_dtype(x, options); }) != x->dtype()) {
    throw InvalidArgument(str("[clamp_] floating bounds do not fit into a tensor of ", x->dtype(),
                              "; use clamp, or give integers"),
                          x.site());
  }
  if (has_nan(options)) return x->fill_(std::numeric_limits<double>::quiet_NaN(), x.site());
  const ops::ClampAttrs attrs{options.min, options.max};
  if (ops::reads_old_value(ops::op_of<ops::Clamp>(), {&x.tensor()})) {
    return ops::write_from_copy(x, [&](const TensorArg& old) {
      return dispatch(ops::op_of<ops::Clamp>(), {&old.tensor()}, attrs, x.site());
    });
  }
  dispatch_in_place(ops::op_of<ops::Clamp>(), {&x.tensor()}, &attrs, x.site());
  return x;
}

const Tensor& clamp_(const TensorArg& x, const Scalar& min, const Scalar& max) {
  return clamp_(x, {.min = min, .max = max});
}

const Tensor& InPlaceMethods::clamp_(const ClampOptions& options, Site site) const {
  flow::clamp_(TensorArg(self(), site), options);
  return self();
}

const Tensor& InPlaceMethods::clamp_(const Scalar& min, const Scalar& max, Site site) const {
  flow::clamp_(TensorArg(self(), site), min, max);
  return self();
}

const Tensor& InPlaceMethods::masked_fill_(const TensorArg& mask, const Scalar& value) const {
  flow::masked_fill_(TensorArg(self(), mask.site()), mask, value);
  return self();
}

Tensor PointwiseMethods::clamp(const ClampOptions& options, Site site) const {
  return flow::clamp(TensorArg(self(), site), options);
}

Tensor PointwiseMethods::clamp(const Scalar& min, const Scalar& max, Site site) const {
  return flow::clamp(TensorArg(self(), site), min, max);
}

Tensor PointwiseMethods::clamp_min(const Scalar& min, Site site) const {
  return flow::clamp_min(TensorArg(self(), site), min);
}

Tensor PointwiseMethods::clamp_min(const TensorArg& min) const {
  return flow::clamp_min(TensorArg(self(), min.site()), min);
}

Tensor PointwiseMethods::clamp_max(const Scalar& max, Site site) const {
  return flow::clamp_max(TensorArg(self(), site), max);
}

Tensor PointwiseMethods::clamp_max(const TensorArg& max) const {
  return flow::clamp_max(TensorArg(self(), max.site()), max);
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
