// Comparisons and logic of two tensors, or of a tensor and a number; the result is bool. Shapes
// broadcast and dtypes are promoted as in ops/elementwise/binary.h.
#pragma once

#include "core/tensor.h"

namespace flow {

// lt(x, 0)
Tensor eq(const TensorArg& a, const TensorArg& b);
Tensor eq(const TensorArg& a, const Scalar& b);
Tensor ne(const TensorArg& a, const TensorArg& b);
Tensor ne(const TensorArg& a, const Scalar& b);
Tensor lt(const TensorArg& a, const TensorArg& b);
Tensor lt(const TensorArg& a, const Scalar& b);
Tensor le(const TensorArg& a, const TensorArg& b);
Tensor le(const TensorArg& a, const Scalar& b);
Tensor gt(const TensorArg& a, const TensorArg& b);
Tensor gt(const TensorArg& a, const Scalar& b);
Tensor ge(const TensorArg& a, const TensorArg& b);
Tensor ge(const TensorArg& a, const Scalar& b);

// The same as operators: x > 0, labels == found. They return tensors; equal() compares whole
// tensors.
Tensor operator==(const TensorArg& a, const TensorArg& b);
Tensor operator==(const TensorArg& a, const Scalar& b);
Tensor operator==(const Scalar& a, const TensorArg& b);
Tensor operator!=(const TensorArg& a, const TensorArg& b);
Tensor operator!=(const TensorArg& a, const Scalar& b);
Tensor operator!=(const Scalar& a, const TensorArg& b);
Tensor operator<(const TensorArg& a, const TensorArg& b);
Tensor operator<(const TensorArg& a, const Scalar& b);
Tensor operator<(const Scalar& a, const TensorArg& b);
Tensor operator<=(const TensorArg& a, const TensorArg& b);
Tensor operator<=(const TensorArg& a, const Scalar& b);
Tensor operator<=(const Scalar& a, const TensorArg& b);
Tensor operator>(const TensorArg& a, const TensorArg& b);
Tensor operator>(const TensorArg& a, const Scalar& b);
Tensor operator>(const Scalar& a, const TensorArg& b);
Tensor operator>=(const TensorArg& a, const TensorArg& b);
Tensor operator>=(const TensorArg& a, const Scalar& b);
Tensor operator>=(const Scalar& a, const TensorArg& b);

// Logical functions; an element counts as true if it is not zero.
Tensor logical_and(const TensorArg& a, const TensorArg& b);
Tensor logical_or(const TensorArg& a, const TensorArg& b);
Tensor logical_xor(const TensorArg& a, const TensorArg& b);

// True where |a - b| <= atol + rtol |b|, where both are the same infinity and, with equal_nan,
// where both are NaN.
Tensor isclose(const TensorArg& a, const TensorArg& b, const CloseOptions& options = {});
// Returns whether isclose is true everywhere; collective for global tensors.
bool allclose(const TensorArg& a, const TensorArg& b, const CloseOptions& options = {});

// Returns whether a and b have the same shape and elements; collective for global tensors.
bool equal(const TensorArg& a, const TensorArg& b);

}  // namespace flow
