// Type promotion for functions of two operands, and calls of ops with promoted operands.
#pragma once

#include <span>
#include <tuple>

#include "core/dispatch.h"
#include "core/op.h"

namespace flow::ops {

// The number of an op "…_scalar". The number takes the dtype of the tensor operand.
struct ScalarAttrs {
  Scalar value;

  template <class C>
  C number() const {
    return value.to<C>();
  }

  static constexpr auto fields() { return std::tuple(value_field("value", &ScalarAttrs::value)); }
};

// The dtype in which both operands are computed. As in PyTorch, within a category (bool, integer,
// floating) a tensor without dims does not raise the dtype.
DType result_dtype(const Tensor& a, const Tensor& b);
// The same for any number of operands, which are defined.
DType result_dtype(std::span<const Tensor* const> operands);

// x in float32 if its dtype has 16 bits, which hold neither squares nor quotients of tiny numbers.
Tensor widened(const TensorArg& x);

// x, cast to default_dtype() if it has integers or bools.
Tensor as_floating(const TensorArg& x);

enum class Promotion {
  kPlain,
  kToFloating
};  // kToFloating: integers and bools give default_dtype()

namespace internal {
Tensor dispatch_promoted(const OpDef& op, const TensorArg& a, const TensorArg& b, const void* attrs,
                         Promotion promotion);
}  // namespace internal

// Calls op(a, b) with both operands cast to their result_dtype.
template <class Attrs>
Tensor dispatch_promoted(const OpDef& op, const TensorArg& a, const TensorArg& b,
                         const Attrs& attrs) {
  return internal::dispatch_promoted(op, a, b, &attrs, Promotion::kPlain);
}

inline Tensor dispatch_promoted(const OpDef& op, const TensorArg& a, const TensorArg& b,
                                Promotion promotion = Promotion::kPlain) {
  return internal::dispatch_promoted(op, a, b, nullptr, promotion);
}

// Returns the number as a tensor without dims that promotes with `a` as a number does.
Tensor number_like(const TensorArg& a, const Scalar& number);

// The same for an op whose result is floating: an integer that does not fit into the dtype of `a`,
// such as -2 for uint8, keeps its value.
Tensor floating_number_like(const TensorArg& a, const Scalar& number);

// Calls op(x; value) with ScalarAttrs and x cast to promote(x's dtype, value).
Tensor dispatch_scalar(const OpDef& op, const TensorArg& x, const Scalar& value,
                       Promotion promotion = Promotion::kPlain);

// Returns whether an in-place form may write a result of this dtype into a tensor of `target`:
// floats do not fit into integers, nor integers into bools.
bool fits(DType result, DType target);
// Throws the error of the in-place form, such as "add_", whose result does not fit.
[[noreturn]] void throw_unfit(const std::string& form, DType result, DType target, Site site);

// Writes the result of op into a. The result is computed in the promoted dtype, whose category a
// must be able to hold, as in PyTorch.
void dispatch_promoted_in_place(const OpDef& op, const TensorArg& a, const TensorArg& b,
                                const void* attrs, Promotion promotion = Promotion::kPlain);
void dispatch_scalar_in_place(const OpDef& op, const Tensor& x, const Scalar& value, Site site,
                              Promotion promotion = Promotion::kPlain);

}  // namespace flow::ops
