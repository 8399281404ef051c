#include "ops/promotion.h"

#include <array>
#include <optional>

#include "core/default_dtype.h"
#include "core/op.h"
#include "ops/creation/creation.h"
#include "ops/creation/whole_like.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/old_value.h"
#include "ops/named_errors.h"

namespace flow::ops {

namespace {

int category(DType dtype) {
  if (is_floating(dtype)) return 2;
  return dtype == DType::kBool ? 0 : 1;
}

DType apply(Promotion promotion, DType dtype) {
  return promotion == Promotion::kToFloating && !is_floating(dtype) ? default_dtype() : dtype;
}

}  // namespace

bool fits(DType result, DType target) {
  return category(result) <= category(target);
}

void throw_unfit(const std::string& form, DType result, DType target, Site site) {
  throw InvalidArgument(str("[", form, "] a ", result, " result does not fit into a tensor of ",
                            target, "; use the form without underscore"),
                        site);
}

Tensor widened(const TensorArg& x) {
  return is_half(x->dtype()) ? cast(x, DType::kFloat32) : x.tensor();
}

Tensor as_floating(const TensorArg& x) {
  return is_floating(x->dtype()) ? x.tensor() : cast(x, default_dtype());
}

DType result_dtype(const Tensor& a, const Tensor& b) {
  const DType left = a.dtype();
  const DType right = b.dtype();
  if (left == right) return left;
  const bool a_counts = a.dim() > 0;
  const bool b_counts = b.dim() > 0;
  if (a_counts != b_counts) {
    const DType major = a_counts ? left : right;
    const DType minor = a_counts ? right : left;
    return category(minor) > category(major) ? minor : major;
  }
  return promote(left, right);
}

DType result_dtype(std::span<const Tensor* const> operands) {
  std::optional<DType> of_dims;
  std::optional<DType> of_scalars;
  for (const Tensor* operand : operands) {
    std::optional<DType>& side = operand->dim() > 0 ? of_dims : of_scalars;
    side = side ? promote(*side, operand->dtype()) : operand->dtype();
  }
  if (!of_dims || !of_scalars) return of_dims ? *of_dims : *of_scalars;
  return category(*of_scalars) > category(*of_dims) ? *of_scalars : *of_dims;
}

namespace {

Tensor number_of(const TensorArg& a, const Scalar& number, DType dtype) {
  const TensorOptions options = ops::whole_like(a, dtype);
  return full({}, number, options, a.site());
}

}  // namespace

Tensor number_like(const TensorArg& a, const Scalar& number) {
  return number_of(a, number, promote(a->dtype(), number));
}

Tensor floating_number_like(const TensorArg& a, const Scalar& number) {
  const DType dtype = promote(a->dtype(), number);
  return number_of(a, number, is_floating(dtype) ? dtype : default_dtype());
}

namespace internal {

Tensor dispatch_promoted(const OpDef& op, const TensorArg& a, const TensorArg& b, const void* attrs,
                         Promotion promotion) {
  const DType dtype = apply(promotion, located(a.site(), [&] { return result_dtype(a, b); }));
  if (a->dtype() == dtype && b->dtype() == dtype) [[likely]] {
    const std::array<const Tensor*, 2> inputs{&a.tensor(), &b.tensor()};
    return dispatch_raw(op, inputs, attrs, a.site());
  }
  const Tensor left = cast(a, dtype);
  const Tensor right = cast(b, dtype);
  const std::array<const Tensor*, 2> inputs{&left, &right};
  return dispatch_raw(op, inputs, attrs, a.site());
}

}  // namespace internal

Tensor dispatch_scalar(const OpDef& op, const TensorArg& x, const Scalar& value,
                       Promotion promotion) {
  const ScalarAttrs attrs{value};
  const DType dtype = apply(promotion, promote(x->dtype(), value));
  if (x->dtype() == dtype) [[likely]]
    return dispatch(op, {&x.tensor()}, attrs, x.site());
  const Tensor operand = cast(x, dtype);
  return dispatch(op, {&operand}, attrs, x.site());
}

void dispatch_promoted_in_place(const OpDef& op, const TensorArg& a, const TensorArg& b,
                                const void* attrs, Promotion promotion) {
  const DType dtype = apply(promotion, result_dtype(a, b));
  if (!fits(dtype, a->dtype())) throw_unfit(in_place_name(op), dtype, a->dtype(), b.site());
  if (reads_old_value(op, {&b.tensor()}) && is_floating(a->dtype())) {
    write_from_copy(TensorArg(a, b.site()), [&](const TensorArg& old) {
      return internal::dispatch_promoted(op, old, b, attrs, promotion);
    });
    return;
  }
  named_in_place(op, b.site(), [&] {
    if (a->dtype() == dtype && b->dtype() == dtype) [[likely]] {
      dispatch_in_place(op, {&a.tensor(), &b.tensor()}, attrs, b.site());
    } else if (a->dtype() == dtype) {
      const Tensor right = cast(b, dtype);
      dispatch_in_place(op, {&a.tensor(), &right}, attrs, b.site());
    } else {
      a->copy_(TensorArg(internal::dispatch_promoted(op, a, b, attrs, promotion), b.site()));
    }
  });
}

void dispatch_scalar_in_place(const OpDef& op, const Tensor& x, const Scalar& value, Site site,
                              Promotion promotion) {
  const ScalarAttrs attrs{value};
  const DType dtype = apply(promotion, promote(x.dtype(), value));
  if (!fits(dtype, x.dtype())) throw_unfit(in_place_name(op), dtype, x.dtype(), site);
  named_in_place(op, site, [&] { dispatch_in_place(op, {&x}, &attrs, site); });
}

}  // namespace flow::ops
