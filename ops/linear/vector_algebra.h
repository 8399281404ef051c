// Products, distances and moments of vectors. The functions are composed of other functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/tensor.h"

namespace flow {

// The cross product along a dim of size 3; shapes broadcast.
Tensor cross(const TensorArg& a, const TensorArg& b, const CrossOptions& options = {});

// The outer product of two vectors: y[i][j] = a[i] b[j].
Tensor outer(const TensorArg& a, const TensorArg& b);

// The products of the rows of a and b, summed: y[…, …'] = sum over i of a[…, i] b[…', i]. A tensor
// without dims is a factor of all elements.  inner(a (2, 3), b (4, 3)): (2, 4)
Tensor inner(const TensorArg& a, const TensorArg& b);

// The p-norm of a - b over all elements; shapes broadcast. Floating only.
Tensor dist(const TensorArg& a, const TensorArg& b, double p = 2);

// The Kronecker product: each element of a times all of b, block by block.
//   kron(a (2, 2), b (3, 1)): (6, 2)
Tensor kron(const TensorArg& a, const TensorArg& b);

struct CdistOptions {
  double p = 2;
};

// The distances norm(a[i] - b[j], p) between all pairs of rows: a (…, P, M), b (…, R, M) -> (…, P,
// R). Needs memory for all P R M differences if p is not 2.
Tensor cdist(const TensorArg& a, const TensorArg& b, const CdistOptions& options = {});

// The p-norm distances between rows i < j of x (N, M): (N (N - 1) / 2).
Tensor pdist(const TensorArg& x, double p = 2);

struct CovOptions {
  int64_t correction = 1;
  Tensor fweights = {};  // integers: number of times each observation counts
  Tensor aweights = {};  // weight of each observation
};

// The covariance matrix (V, V) of V variables. The rows of x (V, N) are the variables, each with N
// observations. One variable gives a scalar. Requires: weights >= 0, which is not checked.
Tensor cov(const TensorArg& x, const CovOptions& options = {});
// The correlation matrix: the covariance divided by the standard deviations.
Tensor corrcoef(const TensorArg& x);

// Scales each slice along `dim` whose p-norm is larger than `maxnorm` down to that norm.
Tensor renorm(const TensorArg& x, double p, int64_t dim, double maxnorm);

struct TrapezoidOptions {
  Tensor x = {};  // positions of the values; unset: evenly spaced by dx
  double dx = 1;
  int64_t dim = -1;
};

// The integral of y along `dim` by the trapezoidal rule.
Tensor trapezoid(const TensorArg& y, const TrapezoidOptions& options = {});
// The integrals from the first value to each later one: one fewer along `dim`.
Tensor cumulative_trapezoid(const TensorArg& y, const TrapezoidOptions& options = {});

// All tuples that take one element of each vector.  cartesian_prod({a (2), b (3)}): (6, 2)
Tensor cartesian_prod(const TensorListArg& tensors);
// All combinations of r elements of the vector x, in order.  combinations(x (4)): (6, 2)
Tensor combinations(const TensorArg& x, int64_t r = 2, bool with_replacement = false);

struct VanderOptions {
  std::optional<int64_t> N = {};  // number of columns; unset: the number of elements
  bool increasing = false;
};

// The Vandermonde matrix: the columns are the powers x^(N - 1), …, x, 1 of a vector's elements.
Tensor vander(const TensorArg& x, const VanderOptions& options = {});

// The bilinear form y[o] = x1^T weight[o] x2 + bias[o]; x1: (…, in1), x2: (…, in2), weight: (out,
// in1, in2).
Tensor bilinear(const TensorArg& x1, const TensorArg& x2, const TensorArg& weight,
                const TensorArg& bias = Tensor());

}  // namespace flow
