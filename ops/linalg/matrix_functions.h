// Functions of matrices that are made of factorisations and other functions: norms, ranks, powers,
// least squares, tensor equations.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>

#include "core/tensor.h"
#include "ops/linear/matmul.h"
#include "ops/reduce/statistics.h"

namespace flow::linalg {

using flow::matmul;
using flow::vector_norm;
using flow::VectorNormOptions;

// A norm of a matrix: "fro", "nuc", or one of the numbers 1, -1, 2, -2 and ±infinity.
class MatrixOrd {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): {.ord = "nuc"}
  MatrixOrd(const char* word, Site site = Site::here());
  MatrixOrd(double number);  // NOLINT(google-explicit-constructor): {.ord = 0.5}

  template <std::integral T>
  MatrixOrd(T number)  // NOLINT(google-explicit-constructor): {.ord = 0} is no null pointer
      : MatrixOrd(static_cast<double>(number)) {}

  bool is(const char* word) const { return word_ == word; }

  double number() const { return number_; }

 private:
  std::string word_;  // empty for a number
  double number_ = 0;
};

struct MatrixNormOptions {
  MatrixOrd ord = "fro";
  Ints dim = {-2, -1};
  bool keepdim = false;
};

// A norm of the matrices in two dims of x. Floating only; the last two rows need float32 or
// float64.
//   "fro"            the root of the sum of squares
//   1, -1            the largest, smallest sum of magnitudes in a column
//   inf, -inf        the largest, smallest sum of magnitudes in a row
//   2, -2            the largest, smallest singular value
//   "nuc"            the sum of singular values
Tensor matrix_norm(const TensorArg& x, const MatrixNormOptions& options = {});

struct LinalgNormOptions {
  std::optional<MatrixOrd> ord = {};
  std::optional<Ints> dim = {};
  bool keepdim = false;
};

// Without `ord`, the root of the sum of squares over `dim`, or over all elements. With `ord`, the
// matrix norm if `dim` names two dims, or if x has two and `dim` is not given; else the vector
// norm. flow::norm is the vector norm of any number of dims.
Tensor norm(const TensorArg& x, const LinalgNormOptions& options = {});

// The condition number norm(x, p) norm(x^-1, p) of matrices (…, m, n): (…). Without p it is 2;
// then, and for -2, x need not be square. Throws InvalidArgument for a singular x if p is another
// norm.
Tensor cond(const TensorArg& x, const std::optional<MatrixOrd>& p = {});

struct MatrixRankOptions {
  std::optional<double> atol = {};
  std::optional<double> rtol = {};  // unset: max(m, n) eps, or 0 if atol is positive
};

// The number of singular values of x (…, m, n) above max(atol, rtol S[0]), as int64: (…).
Tensor matrix_rank(const TensorArg& x, const MatrixRankOptions& options = {});

// The product of n matrices x (…, k, k); of -n inverses if n is negative; the identity if n is 0.
Tensor matrix_power(const TensorArg& x, int64_t n);

struct Lstsq {
  Tensor solution, residuals, rank, singular_values;
};

struct LstsqOptions {
  std::optional<double> rcond = {};  // unset: max(m, n) eps
};

// The X that minimises the sum of squares of A X - B, and among those the smallest, for A (…, m, n)
// and B (…, m, k), or one vector (…, m) for each matrix. It is pinv(A) B: singular values up to
// rcond S[0] count as 0. residuals (…, k) are the sums of squares if m > n, else empty.
Lstsq lstsq(const TensorArg& A, const TensorArg& B, const LstsqOptions& options = {});

// The inverse of the map that tensordot(x, ., x.dim() - ind) computes. The product of the first
// `ind` sizes of x must equal that of the others.  tensorinv(x (4, 6, 8, 3)): (8, 3, 4, 6)
Tensor tensorinv(const TensorArg& x, int64_t ind = 2);

// The X with tensordot(A, X, X.dim()) = B. `dims` of A are moved to its end first.
//   tensorsolve(A (2, 3, 6), B (2, 3)): (6)
Tensor tensorsolve(const TensorArg& A, const TensorArg& B,
                   const std::optional<Ints>& dims = std::nullopt);

// The product of two or more matrices, in the order with the fewest multiplications. The first and
// the last one may be vectors.
Tensor multi_dot(const TensorListArg& tensors);

// The sums of products along `dim`; shapes broadcast.
Tensor vecdot(const TensorArg& x, const TensorArg& y, int64_t dim = -1);

// The cross product along `dim`, of size 3; shapes broadcast.
Tensor cross(const TensorArg& x, const TensorArg& y, int64_t dim = -1);

// The diagonals of matrices, as flow::diagonal gives them; by default, of the last two dims.
Tensor diagonal(const TensorArg& x, int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1);

// The powers x^0, …, x^(N - 1) of the elements of x (…, n): (…, n, N). Without N, it is n. flow::
// vander has the columns of a vector's powers in falling order.
Tensor vander(const TensorArg& x, std::optional<int64_t> N = {});

}  // namespace flow::linalg

namespace flow {

using linalg::matrix_power;

}  // namespace flow
