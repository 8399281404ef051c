// Methods that compute each element of the result from the elements at its place. They are defined
// in ops/elementwise, bernoulli in ops/random.
#pragma once

#include <cstdint>
#include <optional>

#include "core/methods/method_family.h"
#include "core/scalar.h"
#include "core/site.h"

namespace flow {

class Tensor;
class TensorArg;
struct AddOptions;
struct CeluOptions;
struct ClampOptions;
struct DivOptions;
struct EluOptions;
struct FrexpResult;
struct GeluOptions;
struct HardtanhOptions;
struct LeakyReluOptions;
struct NanToNumOptions;
struct RReluOptions;
struct RoundOptions;
struct SoftplusOptions;

// Options of addcmul and addcdiv.
struct AddcOptions {
  double value = 1;
};

// Options of isclose and allclose.
struct CloseOptions {
  double rtol = 1e-5;
  double atol = 1e-8;
  bool equal_nan = false;
};

// Options of logit.
struct LogitOptions {
  std::optional<double> eps = {};  // if set, x is clamped to [eps, 1 - eps] first
};

// Options of hardshrink and softshrink.
struct ShrinkOptions {
  double lambd = 0.5;
};

class PointwiseMethods : public MethodFamily<PointwiseMethods> {
 public:
  // ---- arithmetic
  Tensor add(const TensorArg& other) const;
  Tensor add(const TensorArg& other, const AddOptions& options) const;
  Tensor add(const Scalar& other, Site site = Site::here()) const;
  Tensor add(const Scalar& other, const AddOptions& options, Site site = Site::here()) const;
  Tensor sub(const TensorArg& other) const;
  Tensor sub(const TensorArg& other, const AddOptions& options) const;
  Tensor sub(const Scalar& other, Site site = Site::here()) const;
  Tensor sub(const Scalar& other, const AddOptions& options, Site site = Site::here()) const;
  Tensor mul(const TensorArg& other) const;
  Tensor mul(const Scalar& other, Site site = Site::here()) const;
  Tensor div(const TensorArg& other) const;
  Tensor div(const Scalar& other, Site site = Site::here()) const;
  Tensor div(const TensorArg& other, const DivOptions& options) const;
  Tensor div(const Scalar& other, const DivOptions& options, Site site = Site::here()) const;
  Tensor pow(const Scalar& exponent, Site site = Site::here()) const;
  Tensor pow(const TensorArg& exponent) const;
  Tensor floor_divide(const TensorArg& other) const;
  Tensor floor_divide(const Scalar& other, Site site = Site::here()) const;
  Tensor fmod(const TensorArg& other) const;
  Tensor fmod(const Scalar& other, Site site = Site::here()) const;
  Tensor remainder(const TensorArg& other) const;
  Tensor remainder(const Scalar& other, Site site = Site::here()) const;
  Tensor maximum(const TensorArg& other) const;
  Tensor maximum(const Scalar& other, Site site = Site::here()) const;
  Tensor minimum(const TensorArg& other) const;
  Tensor minimum(const Scalar& other, Site site = Site::here()) const;
  Tensor atan2(const TensorArg& other) const;
  Tensor hypot(const TensorArg& other) const;
  Tensor logaddexp(const TensorArg& other) const;
  Tensor xlogy(const TensorArg& other) const;
  Tensor xlogy(const Scalar& other, Site site = Site::here()) const;
  Tensor fmin(const TensorArg& other) const;
  Tensor fmax(const TensorArg& other) const;
  Tensor heaviside(const TensorArg& values) const;
  Tensor copysign(const TensorArg& other) const;
  Tensor copysign(const Scalar& other, Site site = Site::here()) const;
  Tensor logaddexp2(const TensorArg& other) const;
  Tensor gcd(const TensorArg& other) const;
  Tensor lcm(const TensorArg& other) const;
  Tensor nextafter(const TensorArg& other) const;
  // The tensor is the first argument a of gammainc and gammaincc.
  Tensor igamma(const TensorArg& x) const;
  Tensor igammac(const TensorArg& x) const;
  Tensor float_power(const TensorArg& exponent) const;
  Tensor float_power(const Scalar& exponent, Site site = Site::here()) const;
  FrexpResult frexp(Site site = Site::here()) const;
  Tensor addcmul(const TensorArg& a, const TensorArg& b, const AddcOptions& options = {}) const;
  Tensor addcdiv(const TensorArg& a, const TensorArg& b, const AddcOptions& options = {}) const;
  Tensor lerp(const TensorArg& end, const TensorArg& weight) const;
  Tensor lerp(const TensorArg& end, const Scalar& weight) const;

  // ---- functions of each element
  Tensor exp(Site site = Site::here()) const;
  Tensor exp2(Site site = Site::here()) const;
  Tensor expm1(Site site = Site::here()) const;
  Tensor log(Site site = Site::here()) const;
  Tensor log2(Site site = Site::here()) const;
  Tensor log10(Site site = Site::here()) const;
  Tensor log1p(Site site = Site::here()) const;
  Tensor sqrt(Site site = Site::here()) const;
  Tensor rsqrt(Site site = Site::here()) const;
  Tensor reciprocal(Site site = Site::here()) const;
  Tensor square(Site site = Site::here()) const;
  Tensor abs(Site site = Site::here()) const;
  Tensor neg(Site site = Site::here()) const;
  Tensor sign(Site site = Site::here()) const;
  Tensor floor(Site site = Site::here()) const;
  Tensor ceil(Site site = Site::here()) const;
  Tensor round(Site site = Site::here()) const;
  Tensor round(const RoundOptions& options, Site site = Site::here()) const;
  Tensor trunc(Site site = Site::here()) const;
  Tensor frac(Site site = Site::here()) const;
  Tensor sin(Site site = Site::here()) const;
  Tensor cos(Site site = Site::here()) const;
  Tensor tan(Site site = Site::here()) const;
  Tensor asin(Site site = Site::here()) const;
  Tensor acos(Site site = Site::here()) const;
  Tensor atan(Site site = Site::here()) const;
  Tensor sinh(Site site = Site::here()) const;
  Tensor cosh(Site site = Site::here()) const;
  Tensor tanh(Site site = Site::here()) const;
  Tensor asinh(Site site = Site::here()) const;
  Tensor acosh(Site site = Site::here()) const;
  Tensor atanh(Site site = Site::here()) const;
  Tensor erf(Site site = Site::here()) const;
  Tensor erfc(Site site = Site::here()) const;
  Tensor erfinv(Site site = Site::here()) const;
  Tensor lgamma(Site site = Site::here()) const;
  Tensor digamma(Site site = Site::here()) const;
  Tensor mvlgamma(int64_t p, Site site = Site::here()) const;
  Tensor i0(Site site = Site::here()) const;
  Tensor sinc(Site site = Site::here()) const;
  Tensor ndtr(Site site = Site::here()) const;
  Tensor logit(const LogitOptions& options = {}, Site site = Site::here()) const;
  Tensor rad2deg(Site site = Site::here()) const;
  Tensor deg2rad(Site site = Site::here()) const;
  Tensor sigmoid(Site site = Site::here()) const;
  Tensor relu(Site site = Site::here()) const;
  Tensor hardshrink(const ShrinkOptions& options = {}, Site site = Site::here()) const;
  Tensor silu(Site site = Site::here()) const;
  Tensor selu(Site site = Site::here()) const;
  Tensor mish(Site site = Site::here()) const;
  Tensor hardswish(Site site = Site::here()) const;
  Tensor hardsigmoid(Site site = Site::here()) const;
  Tensor relu6(Site site = Site::here()) const;
  Tensor softsign(Site site = Site::here()) const;
  Tensor logsigmoid(Site site = Site::here()) const;
  Tensor tanhshrink(Site site = Site::here()) const;
  Tensor gelu(Site site = Site::here()) const;
  Tensor gelu(const GeluOptions& options, Site site = Site::here()) const;
  Tensor leaky_relu(Site site = Site::here()) const;
  Tensor leaky_relu(const LeakyReluOptions& options, Site site = Site::here()) const;
  Tensor elu(Site site = Site::here()) const;
  Tensor elu(const EluOptions& options, Site site = Site::here()) const;
  Tensor celu(Site site = Site::here()) const;
  Tensor celu(const CeluOptions& options, Site site = Site::here()) const;
  Tensor softplus(Site site = Site::here()) const;
  Tensor softplus(const SoftplusOptions& options, Site site = Site::here()) const;
  Tensor hardtanh(Site site = Site::here()) const;
  Tensor hardtanh(const HardtanhOptions& options, Site site = Site::here()) const;
  Tensor rrelu(Site site = Site::here()) const;
  Tensor rrelu(const RReluOptions& options, Site site = Site::here()) const;
  Tensor softshrink(const ShrinkOptions& options = {}, Site site = Site::here()) const;
  Tensor threshold(double threshold, double value, Site site = Site::here()) const;
  Tensor softmin(int64_t dim, Site site = Site::here()) const;
  Tensor glu(int64_t dim = -1, Site site = Site::here()) const;
  Tensor prelu(const TensorArg& weight) const;
  Tensor clamp(const ClampOptions& options, Site site = Site::here()) const;
  Tensor clamp(const Scalar& min, const Scalar& max, Site site = Site::here()) const;
  Tensor clamp(const TensorArg& min, const TensorArg& max) const;
  Tensor clamp_min(const Scalar& min, Site site = Site::here()) const;
  Tensor clamp_min(const TensorArg& min) const;
  Tensor clamp_max(const Scalar& max, Site site = Site::here()) const;
  Tensor clamp_max(const TensorArg& max) const;
  Tensor clip(const ClampOptions& options, Site site = Site::here()) const;
  Tensor nan_to_num(Site site = Site::here()) const;
  Tensor nan_to_num(const NanToNumOptions& options, Site site = Site::here()) const;
  Tensor bernoulli(Site site = Site::here()) const;

  // ---- comparisons and logic
  Tensor eq(const TensorArg& other) const;
  Tensor eq(const Scalar& other, Site site = Site::here()) const;
  Tensor ne(const TensorArg& other) const;
  Tensor ne(const Scalar& other, Site site = Site::here()) const;
  Tensor lt(const TensorArg& other) const;
  Tensor lt(const Scalar& other, Site site = Site::here()) const;
  Tensor le(const TensorArg& other) const;
  Tensor le(const Scalar& other, Site site = Site::here()) const;
  Tensor gt(const TensorArg& other) const;
  Tensor gt(const Scalar& other, Site site = Site::here()) const;
  Tensor ge(const TensorArg& other) const;
  Tensor ge(const Scalar& other, Site site = Site::here()) const;
  Tensor logical_and(const TensorArg& other) const;
  Tensor logical_or(const TensorArg& other) const;
  Tensor logical_xor(const TensorArg& other) const;
  Tensor logical_not(Site site = Site::here()) const;
  Tensor bitwise_and(const TensorArg& other) const;
  Tensor bitwise_and(const Scalar& other, Site site = Site::here()) const;
  Tensor bitwise_or(const TensorArg& other) const;
  Tensor bitwise_or(const Scalar& other, Site site = Site::here()) const;
  Tensor bitwise_xor(const TensorArg& other) const;
  Tensor bitwise_xor(const Scalar& other, Site site = Site::here()) const;
  Tensor bitwise_not(Site site = Site::here()) const;
  Tensor bitwise_left_shift(const TensorArg& other) const;
  Tensor bitwise_left_shift(const Scalar& other, Site site = Site::here()) const;
  Tensor bitwise_right_shift(const TensorArg& other) const;
  Tensor bitwise_right_shift(const Scalar& other, Site site = Site::here()) const;
  Tensor isnan(Site site = Site::here()) const;
  Tensor isinf(Site site = Site::here()) const;
  Tensor isfinite(Site site = Site::here()) const;
  Tensor isclose(const TensorArg& other, const CloseOptions& options = {}) const;
  bool allclose(const TensorArg& other, const CloseOptions& options = {}) const;
  bool equal(const TensorArg& other) const;
};

}  // namespace flow
