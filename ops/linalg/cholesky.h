// The Cholesky factorisation of symmetric positive-definite matrices.
#pragma once

#include "core/tensor.h"

namespace flow::linalg {

struct CholeskyOptions {
  bool upper = false;  // the factor is U = L^T, with x = U^T U
};

// The lower triangular L with x = L L^T of symmetric positive-definite matrices x (…, n, n) of
// float32 or float64. The symmetric part (x + x^T) / 2 is factorised, which is x itself if x is
// symmetric; PyTorch reads the lower triangle. Throws InvalidArgument, which names the matrix of
// the batch, if it is not positive-definite. The gradient is symmetric.
//   cholesky(tensor({{4.f, 2.f}, {2.f, 5.f}})): {{2, 0}, {1, 2}}
Tensor cholesky(const TensorArg& x, const CholeskyOptions& options = {});

struct CholeskyEx {
  Tensor L, info;
};

struct CholeskyExOptions {
  bool upper = false;         // as CholeskyOptions
  bool check_errors = false;  // raise as cholesky does
};

// The same without an error: info (…), int32, is 0 for a matrix that was factorised, and else the
// order of its first leading minor that is not positive; L of such a matrix is NaN.
CholeskyEx cholesky_ex(const TensorArg& x, const CholeskyExOptions& options = {});

// The solution X (…, n, k) of A X = B, given the Cholesky factor of A (…, n, n); B: (…, n, k).
Tensor cholesky_solve(const TensorArg& B, const TensorArg& L, const CholeskyOptions& options = {});

// The inverse of A (…, n, n), given its Cholesky factor.
Tensor cholesky_inverse(const TensorArg& L, const CholeskyOptions& options = {});

}  // namespace flow::linalg

namespace flow {

using linalg::cholesky_inverse;
using linalg::cholesky_solve;

}  // namespace flow
