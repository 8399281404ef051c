// Elementwise functions of two tensors, or of a tensor and a number.
//
// Shapes broadcast (NumPy's rule). Different dtypes are promoted as in PyTorch: a tensor without
// dims, and a number, raise the dtype only when their category (bool, integer, floating) is higher.
// Functions with a trailing underscore and compound assignments write into their first operand.
#pragma once

#include <string>

#include "core/tensor.h"

namespace flow {

struct AddOptions {
  double alpha = 1;
};

struct DivOptions {
  std::string rounding_mode = {};  // "": true division; "trunc": towards zero; "floor"
};

// a + alpha b.  add(x, y), x + y, x + 1
Tensor add(const TensorArg& a, const TensorArg& b);
Tensor add(const TensorArg& a, const TensorArg& b, const AddOptions& options);
Tensor add(const TensorArg& a, const Scalar& b);
Tensor add(const TensorArg& a, const Scalar& b, const AddOptions& options);
// a - alpha b. Not for bool: see logical_xor.
Tensor sub(const TensorArg& a, const TensorArg& b);
Tensor sub(const TensorArg& a, const TensorArg& b, const AddOptions& options);
Tensor sub(const TensorArg& a, const Scalar& b);
Tensor sub(const TensorArg& a, const Scalar& b, const AddOptions& options);
Tensor mul(const TensorArg& a, const TensorArg& b);
Tensor mul(const TensorArg& a, const Scalar& b);
// a / b. For integers the result has default_dtype(). With a rounding mode integers stay integers,
// and an integer divided by zero throws InvalidArgument.
Tensor div(const TensorArg& a, const TensorArg& b);
Tensor div(const TensorArg& a, const TensorArg& b, const DivOptions& options);
Tensor div(const TensorArg& a, const Scalar& b);
Tensor div(const TensorArg& a, const Scalar& b, const DivOptions& options);

Tensor operator+(const TensorArg& a, const TensorArg& b);
Tensor operator+(const TensorArg& a, const Scalar& b);
Tensor operator+(const Scalar& a, const TensorArg& b);
Tensor operator-(const TensorArg& a, const TensorArg& b);
Tensor operator-(const TensorArg& a, const Scalar& b);
Tensor operator-(const Scalar& a, const TensorArg& b);
Tensor operator*(const TensorArg& a, const TensorArg& b);
Tensor operator*(const TensorArg& a, const Scalar& b);
Tensor operator*(const Scalar& a, const TensorArg& b);
Tensor operator/(const TensorArg& a, const TensorArg& b);
Tensor operator/(const TensorArg& a, const Scalar& b);
Tensor operator/(const Scalar& a, const TensorArg& b);

Tensor& operator+=(Tensor& a, const TensorArg& b);
Tensor& operator+=(Tensor& a, const ScalarArg& b);
Tensor& operator-=(Tensor& a, const TensorArg& b);
Tensor& operator-=(Tensor& a, const ScalarArg& b);
Tensor& operator*=(Tensor& a, const TensorArg& b);
Tensor& operator*=(Tensor& a, const ScalarArg& b);
Tensor& operator/=(Tensor& a, const TensorArg& b);
Tensor& operator/=(Tensor& a, const ScalarArg& b);

// `x[0] += y`: writes into the memory that the view shows. Throws InvalidArgument if nobody else
// can see the write, because the left side is a copy: x.index({mask}) += y.
const Tensor& operator+=(Tensor&& a, const TensorArg& b);
const Tensor& operator+=(Tensor&& a, const ScalarArg& b);
const Tensor& operator-=(Tensor&& a, const TensorArg& b);
const Tensor& operator-=(Tensor&& a, const ScalarArg& b);
const Tensor& operator*=(Tensor&& a, const TensorArg& b);
const Tensor& operator*=(Tensor&& a, const ScalarArg& b);
const Tensor& operator/=(Tensor&& a, const TensorArg& b);
const Tensor& operator/=(Tensor&& a, const ScalarArg& b);

// a to the power b. Integers wrap around. A number that is a negative integer exponent of integers
// throws InvalidArgument.
Tensor pow(const TensorArg& a, const TensorArg& b);
Tensor pow(const TensorArg& a, const Scalar& b);
Tensor pow(const Scalar& a, const TensorArg& b);
// floor(a / b).
Tensor floor_divide(const TensorArg& a, const TensorArg& b);
Tensor floor_divide(const TensorArg& a, const Scalar& b);
// The remainder of the division, with the sign of the dividend (C's fmod).
Tensor fmod(const TensorArg& a, const TensorArg& b);
Tensor fmod(const TensorArg& a, const Scalar& b);
// The remainder of the division, with the sign of the divisor: Python's %, and not C++'s, which is
// fmod.
Tensor remainder(const TensorArg& a, const TensorArg& b);
Tensor remainder(const TensorArg& a, const Scalar& b);
Tensor operator%(const TensorArg& a, const TensorArg& b);
Tensor operator%(const TensorArg& a, const Scalar& b);

// log(exp(a) + exp(b)) without overflow. Floating only.
Tensor logaddexp(const TensorArg& a, const TensorArg& b);
// a log(b), 0 where a is 0 unless b is NaN.
Tensor xlogy(const TensorArg& a, const TensorArg& b);
Tensor xlogy(const TensorArg& a, const Scalar& b);
// sqrt(a a + b b) without overflow. Floating only.
Tensor hypot(const TensorArg& a, const TensorArg& b);

// The larger or the smaller; NaN if either is NaN. If both are equal, each gets half the gradient.
Tensor maximum(const TensorArg& a, const TensorArg& b);
Tensor maximum(const TensorArg& a, const Scalar& b);
Tensor minimum(const TensorArg& a, const TensorArg& b);
Tensor minimum(const TensorArg& a, const Scalar& b);
// The elementwise maximum (fmax) or minimum (fmin). If one of the two elements is NaN, the result
// is the other.
Tensor fmax(const TensorArg& a, const TensorArg& b);
Tensor fmin(const TensorArg& a, const TensorArg& b);

}  // namespace flow
