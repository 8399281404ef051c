// Elementwise functions of three tensors. Shapes broadcast and dtypes are promoted as in
// ops/elementwise/binary.h.
#pragma once

#include "core/tensor.h"

namespace flow {

// x + value a b.
Tensor addcmul(const TensorArg& x, const TensorArg& a, const TensorArg& b,
               const AddcOptions& options = {});
// x + value a / b. Floating only.
Tensor addcdiv(const TensorArg& x, const TensorArg& a, const TensorArg& b,
               const AddcOptions& options = {});

// start + weight (end - start), computed from the nearer end, so that it is exactly `end` if weight
// is 1.
Tensor lerp(const TensorArg& start, const TensorArg& end, const TensorArg& weight);
Tensor lerp(const TensorArg& start, const TensorArg& end, const Scalar& weight);

// The same functions, written over x or start. The other operands broadcast to its shape.
const Tensor& addcmul_(const TensorArg& x, const TensorArg& a, const TensorArg& b,
                       const AddcOptions& options = {});
const Tensor& addcdiv_(const TensorArg& x, const TensorArg& a, const TensorArg& b,
                       const AddcOptions& options = {});
const Tensor& lerp_(const TensorArg& start, const TensorArg& end, const TensorArg& weight);
const Tensor& lerp_(const TensorArg& start, const TensorArg& end, const Scalar& weight);

}  // namespace flow
