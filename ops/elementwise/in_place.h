// Elementwise functions that write their result over their first operand and return it: the
// function without underscore, with the same gradient. x keeps its shape, to which the others
// broadcast, and its dtype, which must be able to hold the result. Forms of unary functions are in
// ops/elementwise/unary.h, x += y and its like in ops/elementwise/binary.h; clamp_, masked_fill_,
// addcmul_, addcdiv_ and lerp_ follow their functions.
#pragma once

#include "core/tensor.h"
#include "ops/elementwise/activation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/shrink.h"
#include "ops/elementwise/unary.h"

namespace flow {

// x.add_(b, {.alpha}) is a method. So are the forms of add, sub, mul and div without options.
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

// Activations, written over x.
const Tensor& celu_(const TensorArg& x, const CeluOptions& options = {});
const Tensor& elu_(const TensorArg& x, const EluOptions& options = {});
const Tensor& hardtanh_(const TensorArg& x, const HardtanhOptions& options = {});
const Tensor& leaky_relu_(const TensorArg& x, const LeakyReluOptions& options = {});
const Tensor& rrelu_(const TensorArg& x, const RReluOptions& options = {});
const Tensor& selu_(const TensorArg& x);
const Tensor& threshold_(const TensorArg& x, double threshold, double value);

// The other triangle becomes 0; see ops/shape/concat.h.
const Tensor& tril_(const TensorArg& x, int64_t diagonal = 0);
const Tensor& triu_(const TensorArg& x, int64_t diagonal = 0);

}  // namespace flow
