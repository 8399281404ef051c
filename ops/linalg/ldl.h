// LDL^T factorisations of symmetric matrices, which need not be positive-definite.
#pragma once

#include "core/tensor.h"
#include "ops/linalg/lu.h"

namespace flow::linalg {

// The functions take float32 or float64 matrices (…, n, n); the dims before them are a batch. On
// CUDA devices they raise Unsupported.

struct LdlFactor {
  Tensor LD, pivots;
};

// The factors of x = P L D L^T P^T, of which only the lower triangle is read, by the method of
// Bunch and Kaufman (1977) in LAPACK's compact form. D is symmetric with blocks of one or two rows
// on its diagonal: LD (…, n, n) has them in its lower triangle, and below them L without its
// diagonal of ones. pivots (…, n) is int32. If pivots[i] is positive, the block has one row, and
// row i was swapped with row pivots[i] - 1. If pivots[i] and pivots[i + 1] are the same negative
// number, the block has two rows, and row i + 1 was swapped with row -pivots[i] - 1. Throws
// InvalidArgument, which names the matrix of the batch, if D is singular. As in PyTorch, there is
// no derivative.
LdlFactor ldl_factor(const TensorArg& x);

struct LdlFactorEx {
  Tensor LD, pivots, info;
};

// The same without an error: info (…), int32, is 0, or the number of the first block of D that is
// zero, counted in rows from 1.
LdlFactorEx ldl_factor_ex(const TensorArg& x, const ExOptions& options = {});

// The solution X of A X = B, given ldl_factor(A); B: (…, n, k). Batches broadcast. The gradient of
// LD is not implemented; that of B is.
//   const auto [LD, pivots] = linalg::ldl_factor(A);
//   const Tensor X = linalg::ldl_solve(LD, pivots, B);
Tensor ldl_solve(const TensorArg& LD, const TensorArg& pivots, const TensorArg& B);

}  // namespace flow::linalg
