// Gamma functions, the inverse of erf, logits and signs. Integers and bools are cast to
// default_dtype(). The result is NaN outside of the domain.
#pragma once

#include <cstdint>
#include <optional>

#include "core/tensor.h"

namespace flow {

// log |Γ(x)|.
Tensor lgamma(const TensorArg& x);
// The derivative of lgamma; NaN at negative integers.
Tensor digamma(const TensorArg& x);
// The n-th derivative of digamma.  polygamma(1, x)
Tensor polygamma(int64_t n, const TensorArg& x);

// The y with erf(y) = x; infinite at -1 and 1.
Tensor erfinv(const TensorArg& x);

// log(x / (1 - x)), the inverse of sigmoid.
Tensor logit(const TensorArg& x, const LogitOptions& options = {});

// |a| with the sign of b, for which the sign of a zero counts too.
Tensor copysign(const TensorArg& a, const TensorArg& b);
Tensor copysign(const TensorArg& a, const Scalar& b);

// 0 where x < 0, `values` where it is 0, 1 where it is larger.
Tensor heaviside(const TensorArg& x, const TensorArg& values);

// log2(2^a + 2^b), without overflow.
Tensor logaddexp2(const TensorArg& a, const TensorArg& b);

Tensor deg2rad(const TensorArg& x);
Tensor rad2deg(const TensorArg& x);

// x 2^exponent.
Tensor ldexp(const TensorArg& x, const TensorArg& exponent);

// Whether the sign of x is set: also for -0 and a negative NaN.
Tensor signbit(const TensorArg& x);

// The logarithm of the multivariate gamma function of dimension p: p (p - 1) / 4 log π plus the sum
// of lgamma(x - j / 2) over j < p. Needs p > 0 and x > (p - 1) / 2.
Tensor mvlgamma(const TensorArg& x, int64_t p);

}  // namespace flow
