// The exponential of matrices.
#pragma once

#include "core/tensor.h"

namespace flow::linalg {

// The sum of x^k / k! over all k for square matrices x (…, n, n) of float32 or float64, by scaling,
// the terms up to k = 18 and squaring. Throws InvalidArgument for a matrix with a NaN or an
// infinity.
Tensor matrix_exp(const TensorArg& x);

}  // namespace flow::linalg

namespace flow {

using linalg::matrix_exp;

}  // namespace flow
