// LU factorisations, and what is made of them: solutions of linear systems, inverses, determinants.
#pragma once

#include "core/tensor.h"

namespace flow::linalg {

// All functions take float32 or float64 matrices in the last two dims; the dims before them are a
// batch. On CUDA devices they raise Unsupported.

struct LuFactor {
  Tensor LU, pivots;
};

// The factors of x (…, m, n) = P L U with partial pivoting, in one tensor (…, m, n): U on and above
// the diagonal, L without its diagonal of ones below it. In step i, row i was swapped with row
// pivots[i] - 1; pivots (…, min(m, n)) is int32, as in LAPACK. Throws InvalidArgument, which names
// the matrix of the batch, if U has a zero on its diagonal.
LuFactor lu_factor(const TensorArg& x);

struct LuFactorEx {
  Tensor LU, pivots, info;
};

struct ExOptions {
  bool check_errors = false;  // raise as the function without _ex does
};

// The same without an error: info (…), int32, is 0, or the number of the first zero on the diagonal
// of U, counted from 1. Such a matrix has factors too, but no gradient.
LuFactorEx lu_factor_ex(const TensorArg& x, const ExOptions& options = {});

struct Lu {
  Tensor P, L, U;
};

// The factors of x = P L U: P (…, m, m) is a permutation, L (…, m, k) has a diagonal of ones, and U
// is (…, k, n), with k = min(m, n). A singular matrix has factors too, but no gradient.
Lu lu(const TensorArg& x);

struct LuSolveOptions {
  bool left = true;      // false: X A = B
  bool adjoint = false;  // A^T in place of A
};

// The solution X of A X = B, given lu_factor(A) of matrices A (…, n, n); B: (…, n, k). Batches
// broadcast.
Tensor lu_solve(const TensorArg& LU, const TensorArg& pivots, const TensorArg& B,
                const LuSolveOptions& options = {});

struct SolveOptions {
  bool left = true;  // false: X A = B
};

// The solution X of A X = B; A: (…, n, n), B: (…, n, k), or one vector (…, n) for each matrix.
// Batches broadcast. Throws InvalidArgument, which names the matrix of the batch, if A is singular.
//   solve(tensor({{3.f, 1.f}, {1.f, 2.f}}), tensor({9.f, 8.f})): {2, 3}
Tensor solve(const TensorArg& A, const TensorArg& B, const SolveOptions& options = {});

struct SolveEx {
  Tensor result, info;
};

struct SolveExOptions {
  bool left = true;           // false: X A = B
  bool check_errors = false;  // raise as solve does
};

// The same without an error: info, int32, has the batch of A and is positive where A is singular,
// else 0. Such an X is NaN, and so is its gradient.
SolveEx solve_ex(const TensorArg& A, const TensorArg& B, const SolveExOptions& options = {});

// The inverse of x (…, n, n). Throws InvalidArgument if x is singular. To multiply by an inverse,
// solve() is faster and more accurate.
Tensor inv(const TensorArg& x);
// The same as inv.
Tensor inverse(const TensorArg& x);

struct InvEx {
  Tensor inverse, info;
};

// The same without an error: info (…), int32, is positive where x is singular, else 0. Such an
// inverse is NaN, and so is its gradient.
InvEx inv_ex(const TensorArg& x, const ExOptions& options = {});

// The determinant of x (…, n, n): (…). It is 0 if x is singular; the gradient det(x) x^-T then
// throws InvalidArgument, as it is computed from the inverse.
Tensor det(const TensorArg& x);

struct Slogdet {
  Tensor sign, logabsdet;
};

// The sign of the determinant (-1, 0 or 1) and the logarithm of its magnitude, which is -inf if x
// is singular: det(x) = sign exp(logabsdet) without overflow. The gradient of logabsdet is x^-T.
Slogdet slogdet(const TensorArg& x);

// The logarithm of the determinant: NaN if it is negative, -inf if it is 0.
Tensor logdet(const TensorArg& x);

}  // namespace flow::linalg

namespace flow {

using linalg::det;
using linalg::inverse;
using linalg::logdet;
using linalg::lu_solve;
using linalg::slogdet;

}  // namespace flow
