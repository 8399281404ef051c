// The singular value decomposition and the pseudoinverse.
#pragma once

#include <optional>

#include "core/tensor.h"

namespace flow::linalg {

struct Svd {
  Tensor U, S, Vh;
};

struct SvdOptions {
  bool full_matrices = true;  // U (…, m, m) and Vh (…, n, n); else (…, m, k) and (…, k, n)
};

// x = U diag(S) Vh for matrices x (…, m, n) of float32 or float64. S (…, k), k = min(m, n), is in
// descending order; the columns of U and the rows of Vh are orthonormal. Signs: in each of the
// first k columns of U, the first element with at least 0.9 of the largest magnitude is positive;
// PyTorch has no rule. The gradient of U and Vh needs distinct singular values, none of them 0
// unless x is square, and a function of them that their signs do not change (Townsend 2016). As in
// PyTorch, no gradient passes through the columns of U and rows of Vh after the first k. Throws
// InvalidArgument for a matrix with a NaN or an infinity.
Svd svd(const TensorArg& x, const SvdOptions& options = {});
// The singular values alone, which takes about a third of the time; their gradient exists for
// repeated singular values too, and computes the vectors.
Tensor svdvals(const TensorArg& x);

struct Polar {
  Tensor U, H;
};

// The polar decomposition x = U H of matrices x (…, m, n), m >= n, of full rank: the columns of U
// (…, m, n) are orthonormal, and U is the closest such matrix to x; H (…, n, n) is symmetric
// without negative eigenvalues. By singular values: U = W Vh and H = V S Vh for x = W S Vh. The
// gradient is that of svd, and so needs distinct singular values.
Polar polar(const TensorArg& x);

struct PinvOptions {
  std::optional<double> atol = {};
  std::optional<double> rtol = {};  // unset: max(m, n) eps, or 0 if atol is positive
};

// The pseudoinverse (…, n, m) of x (…, m, n) by singular values, of which those up to max(atol,
// rtol S[0]) count as 0. The gradient is that of matrices of the same rank (Golub, Pereyra 1973).
Tensor pinv(const TensorArg& x, const PinvOptions& options = {});
// The same with rcond for rtol.
Tensor pinverse(const TensorArg& x, double rcond = 1e-15);

}  // namespace flow::linalg

namespace flow {

using linalg::pinverse;

}  // namespace flow
