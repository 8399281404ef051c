// Elementwise functions that write their result over their first operand and return it: the
// function without underscore, with the same gradient. x keeps its shape, to which the others
// broadcast, and its dtype, which must be able to hold the result. x += y and its like are in
// ops/elementwise/binary.h; relu_, clamp_, masked_fill_, addcmul_, addcdiv_ and
// lerp_ beside their functions.
#pragma once

#include "core/tensor.h"
#include "ops/elementwise/binary.h"

namespace flow {

const Tensor& neg_(const TensorArg& x);
const Tensor& abs_(const TensorArg& x);
const Tensor& sign_(const TensorArg& x);
const Tensor& square_(const TensorArg& x);
const Tensor& floor_(const TensorArg& x);
const Tensor& ceil_(const TensorArg& x);
const Tensor& round_(const TensorArg& x);
const Tensor& trunc_(const TensorArg& x);

// Floating dtypes only.
const Tensor& frac_(const TensorArg& x);
const Tensor& exp_(const TensorArg& x);
const Tensor& exp2_(const TensorArg& x);
const Tensor& expm1_(const TensorArg& x);
const Tensor& log_(const TensorArg& x);
const Tensor& log2_(const TensorArg& x);
const Tensor& log10_(const TensorArg& x);
const Tensor& log1p_(const TensorArg& x);
const Tensor& sqrt_(const TensorArg& x);
const Tensor& rsqrt_(const TensorArg& x);
const Tensor& reciprocal_(const TensorArg& x);
const Tensor& sin_(const TensorArg& x);
const Tensor& cos_(const TensorArg& x);
const Tensor& tan_(const TensorArg& x);
const Tensor& tanh_(const TensorArg& x);
const Tensor& erf_(const TensorArg& x);
const Tensor& erfc_(const TensorArg& x);
const Tensor& sigmoid_(const TensorArg& x);
const Tensor& silu_(const TensorArg& x);

// x.add_(b, {.alpha}) is a method, as are the forms of add, sub, mul and div without options.
const Tensor& sub_(const TensorArg& x, const TensorArg& b, const AddOptions& options = {});
const Tensor& div_(const TensorArg& x, const TensorArg& b, const DivOptions& options = {});
const Tensor& div_(const TensorArg& x, const Scalar& b, const DivOptions& options = {});
const Tensor& pow_(const TensorArg& x, const TensorArg& exponent);
const Tensor& pow_(const TensorArg& x, const Scalar& exponent);
const Tensor& clamp_min_(const TensorArg& x, const Scalar& min);
const Tensor& clamp_max_(const TensorArg& x, const Scalar& max);
const Tensor& fmod_(const TensorArg& x, const TensorArg& b);
const Tensor& fmod_(const TensorArg& x, const Scalar& b);
const Tensor& remainder_(const TensorArg& x, const TensorArg& b);
const Tensor& remainder_(const TensorArg& x, const Scalar& b);
const Tensor& floor_divide_(const TensorArg& x, const TensorArg& b);
const Tensor& floor_divide_(const TensorArg& x, const Scalar& b);

// The other triangle becomes 0; see ops/shape/concat.h.
const Tensor& tril_(const TensorArg& x, int64_t diagonal = 0);
const Tensor& triu_(const TensorArg& x, int64_t diagonal = 0);

}  // namespace flow
