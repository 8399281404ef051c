// Calls the op of a row of ops/elementwise/row_table.h as its public function does.
#pragma once

#include "core/default_dtype.h"
#include "core/dispatch.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/old_value.h"
#include "ops/elementwise/row_table.h"
#include "ops/named_errors.h"
#include "ops/promotion.h"

namespace flow::ops {

template <class Row>
Tensor run(const TensorArg& x) {
  constexpr Takes kTakes = Row::kFacts.takes;
  if constexpr (kTakes == Takes::kPromoted || kTakes == Takes::kPromotedNumbers) {
    const bool is_promoted =
        kTakes == Takes::kPromoted ? !is_floating(x->dtype()) : is_integral(x->dtype());
    if (is_promoted) [[unlikely]] {
      const Tensor floating = cast(x, default_dtype());
      return dispatch(op_of<Row>(), {&floating}, x.site());
    }
  }
  return dispatch(op_of<Row>(), {&x.tensor()}, x.site());
}

template <class Row>
inline constexpr Promotion kPromotionOf =
    Row::kFacts.takes == Takes::kPromoted ? Promotion::kToFloating : Promotion::kPlain;

template <class Row>
Tensor run(const TensorArg& a, const TensorArg& b) {
  return dispatch_promoted(op_of<Row>(), a, b, kPromotionOf<Row>);
}

template <class Row>
Tensor run(const TensorArg& x, const Scalar& number) {
  return dispatch_scalar(op_of<Row>(), x, number, kPromotionOf<Row>);
}

// The number, rounded to the dtype of x if that has 16 bits, whose formulas are computed in float.
// Functions that jump, such as comparisons and fmod, otherwise take an element that is the rounded
// number for a smaller or a larger one.
inline Scalar rounded_like(const TensorArg& x, const Scalar& number) {
  if (!is_half(x->dtype())) [[likely]]
    return number;
  return dispatch_floating(x->dtype(), [&]<class T>() -> Scalar {
    return static_cast<double>(static_cast<float>(number.to<T>()));
  });
}

template <class Row>
const Tensor& run_in_place(const TensorArg& x) {
  const OpDef& op = op_of<Row>();
  return named_in_place(op, x.site(), [&]() -> const Tensor& {
    if (reads_old_value(op, {&x.tensor()})) {
      return write_from_copy(
          x, [&](const TensorArg& old) { return dispatch(op, {&old.tensor()}, x.site()); });
    }
    dispatch_in_place(op, {&x.tensor()}, nullptr, x.site());
    return x;
  });
}

}  // namespace flow::ops
