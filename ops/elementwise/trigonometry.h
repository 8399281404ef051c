// Trigonometric and hyperbolic functions and their inverses; sin, cos and tanh are in
// ops/elementwise/unary.h. Integers and bools are cast to default_dtype(). Angles are in radians.
// The result is NaN outside of the domain.
#pragma once

#include "core/tensor.h"

namespace flow {

Tensor tan(const TensorArg& x);
Tensor asin(const TensorArg& x);
Tensor acos(const TensorArg& x);
Tensor atan(const TensorArg& x);
Tensor sinh(const TensorArg& x);
Tensor cosh(const TensorArg& x);
Tensor asinh(const TensorArg& x);
Tensor acosh(const TensorArg& x);
Tensor atanh(const TensorArg& x);

// The angle in [-pi, pi] of the point with ordinate y and abscissa x; shapes broadcast and dtypes
// are promoted as in ops/elementwise/binary.h.
Tensor atan2(const TensorArg& y, const TensorArg& x);

}  // namespace flow
