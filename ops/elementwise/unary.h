// Elementwise functions of one tensor. Exponentials, roots, logarithms, trigonometric and sigmoid
// functions cast integers and bools to default_dtype(); activations take only floats.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/tensor.h"

namespace flow {

// -x; not for bool.
Tensor neg(const TensorArg& x);
Tensor operator-(const TensorArg& x);
Tensor abs(const TensorArg& x);
// -1, 0 or 1; 0 for NaN.
Tensor sign(const TensorArg& x);
// x x.
Tensor square(const TensorArg& x);
// Integers stay as they are. round: halves go to the even neighbour.
Tensor floor(const TensorArg& x);
Tensor ceil(const TensorArg& x);
Tensor round(const TensorArg& x);
// Rounds towards zero.
Tensor trunc(const TensorArg& x);
// x - trunc(x); floating only.
Tensor frac(const TensorArg& x);

struct RoundOptions {
  int64_t decimals = 0;  // negative: to tens, hundreds, …
};

// round(x 10^decimals) / 10^decimals. For integers only without decimals.
Tensor round(const TensorArg& x, const RoundOptions& options);

Tensor exp(const TensorArg& x);
// 2 to the power x.
Tensor exp2(const TensorArg& x);
// exp(x) - 1, exact near 0.
Tensor expm1(const TensorArg& x);
Tensor log(const TensorArg& x);
Tensor log2(const TensorArg& x);
Tensor log10(const TensorArg& x);
// log(1 + x), exact near 0.
Tensor log1p(const TensorArg& x);
Tensor sqrt(const TensorArg& x);
// 1 / sqrt(x).
Tensor rsqrt(const TensorArg& x);
// 1 / x.
Tensor reciprocal(const TensorArg& x);
Tensor sin(const TensorArg& x);
Tensor cos(const TensorArg& x);
Tensor tanh(const TensorArg& x);
Tensor erf(const TensorArg& x);
// 1 - erf(x), exact where that is near 0.
Tensor erfc(const TensorArg& x);
Tensor ndtr(const TensorArg& x);  // the normal distribution function
// sin(pi x) / (pi x), 1 for 0.
Tensor sinc(const TensorArg& x);
// 1 / (1 + exp(-x)).
Tensor sigmoid(const TensorArg& x);

// max(x, 0); also for integers.
Tensor relu(const TensorArg& x);

struct GeluOptions {
  std::string approximate = "none";  // "none": the error function; "tanh"
};

// x times the normal distribution function of x. With "tanh": x (1 + tanh(sqrt(2/π) (x + 0.044715
// x³))) / 2 (Hendrycks and Gimpel 2016).
Tensor gelu(const TensorArg& x, const GeluOptions& options = {});

// x sigmoid(x).
Tensor silu(const TensorArg& x);

struct LeakyReluOptions {
  double negative_slope = 0.01;
};

// x where x > 0, else negative_slope x.
Tensor leaky_relu(const TensorArg& x, const LeakyReluOptions& options = {});

struct EluOptions {
  double alpha = 1;
};

// x where x > 0, else alpha (exp(x) - 1).
Tensor elu(const TensorArg& x, const EluOptions& options = {});

struct SoftplusOptions {
  double beta = 1;
  double threshold = 20;  // the result is x where beta x is above this
};

// log(1 + exp(beta x)) / beta.
Tensor softplus(const TensorArg& x, const SoftplusOptions& options = {});

// Predicates return bool tensors.
Tensor isnan(const TensorArg& x);
Tensor isinf(const TensorArg& x);
Tensor isfinite(const TensorArg& x);

struct NanToNumOptions {
  double nan = 0;
  std::optional<double> posinf = {};  // unset: the largest finite number of the dtype
  std::optional<double> neginf = {};  // unset: the smallest
};

// Replaces NaN and infinities by numbers; the gradient of replaced elements is 0.
Tensor nan_to_num(const TensorArg& x, const NanToNumOptions& options = {});

// True where x is zero.
Tensor logical_not(const TensorArg& x);

// ---- in place: the function without underscore is written over x, which is returned. The gradient
// is the same. x keeps its dtype, which must be able to hold the result.

const Tensor& neg_(const TensorArg& x);
const Tensor& abs_(const TensorArg& x);
const Tensor& sign_(const TensorArg& x);
const Tensor& square_(const TensorArg& x);
const Tensor& floor_(const TensorArg& x);
const Tensor& ceil_(const TensorArg& x);
const Tensor& round_(const TensorArg& x);
const Tensor& trunc_(const TensorArg& x);

// These take only floating dtypes.
const Tensor& frac_(const TensorArg& x);
const Tensor& exp_(const TensorArg& x);
const Tensor& exp2_(const TensorArg& x);
const Tensor& expm1_(const TensorArg& x);
const Tensor& log_(const TensorArg& x);
const Tensor& log2_(const TensorArg& x);
const Tensor& log10_(const TensorArg& x);
const Tensor& log1p_(const TensorArg& x);
const Tensor& sqrt_(const TensorArg& x);
const Tensor& rsqrt_(const TensorArg& x);
const Tensor& reciprocal_(const TensorArg& x);
const Tensor& sin_(const TensorArg& x);
const Tensor& cos_(const TensorArg& x);
const Tensor& tan_(const TensorArg& x);
const Tensor& tanh_(const TensorArg& x);
const Tensor& erf_(const TensorArg& x);
const Tensor& erfc_(const TensorArg& x);
const Tensor& ndtr_(const TensorArg& x);
const Tensor& sigmoid_(const TensorArg& x);
const Tensor& relu_(const TensorArg& x);
const Tensor& silu_(const TensorArg& x);

}  // namespace flow
