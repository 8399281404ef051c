// Orthogonal polynomials (torch.special), by their recurrences.
#pragma once

#include <concepts>
#include <cstdint>

#include "core/tensor.h"

namespace flow {

// The degree of a polynomial: a number, or a tensor with one degree for each element.
class PolynomialDegree {
 public:
  template <class T>

  // NOLINTNEXTLINE(google-explicit-constructor): chebyshev_polynomial_t(x, 3)
  requires std::integral<T> || std::floating_point<T> PolynomialDegree(T number)
      : number_(static_cast<int64_t>(number)) {}

  PolynomialDegree(const Tensor& numbers)  // NOLINT(google-explicit-constructor): or (x, n)
      : numbers_(numbers) {}

  // Undefined for a number.
  const Tensor& numbers() const { return numbers_; }

  int64_t number() const { return number_; }

 private:
  Tensor numbers_;
  int64_t number_ = 0;
};

// The polynomials of degree n at x. Shapes and dtypes of x and of a tensor n are promoted; integers
// become default_dtype(). Fractions of n are cut off; negative degrees give 0. Gradients pass to x.
// Takes about three elementwise functions for each degree up to n, which is at most 100,000. Of a
// tensor n the largest element is read, so graphs refuse it with Unsupported.
//
// p[0] = 1; formulas 22.7 of Abramowitz, Stegun (1964), and of V and W of Mason, Handscomb (2003):
//   T    p[1] = x        p[k + 1] = 2 x p[k] - p[k - 1]
//   U    p[1] = 2 x      as T
//   V    p[1] = 2 x - 1  as T
//   W    p[1] = 2 x + 1  as T
//   H    p[1] = 2 x      p[k + 1] = 2 x p[k] - 2 k p[k - 1]
//   He   p[1] = x        p[k + 1] = x p[k] - k p[k - 1]
//   L    p[1] = 1 - x    (k + 1) p[k + 1] = (2 k + 1 - x) p[k] - k p[k - 1]
//   P    p[1] = x        (k + 1) p[k + 1] = (2 k + 1) x p[k] - k p[k - 1]
//
//   chebyshev_polynomial_t(x, 2): 2 x^2 - 1
Tensor chebyshev_polynomial_t(const TensorArg& x, const PolynomialDegree& n);
Tensor chebyshev_polynomial_u(const TensorArg& x, const PolynomialDegree& n);
Tensor chebyshev_polynomial_v(const TensorArg& x, const PolynomialDegree& n);
Tensor chebyshev_polynomial_w(const TensorArg& x, const PolynomialDegree& n);
Tensor hermite_polynomial_h(const TensorArg& x, const PolynomialDegree& n);
Tensor hermite_polynomial_he(const TensorArg& x, const PolynomialDegree& n);
Tensor laguerre_polynomial_l(const TensorArg& x, const PolynomialDegree& n);
Tensor legendre_polynomial_p(const TensorArg& x, const PolynomialDegree& n);

// The Chebyshev polynomials at 2 x - 1, which are orthogonal between 0 and 1.
Tensor shifted_chebyshev_polynomial_t(const TensorArg& x, const PolynomialDegree& n);
Tensor shifted_chebyshev_polynomial_u(const TensorArg& x, const PolynomialDegree& n);
Tensor shifted_chebyshev_polynomial_v(const TensorArg& x, const PolynomialDegree& n);
Tensor shifted_chebyshev_polynomial_w(const TensorArg& x, const PolynomialDegree& n);

}  // namespace flow
