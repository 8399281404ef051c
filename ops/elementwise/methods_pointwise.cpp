// Methods of Tensor for functions of each element and for products.
#include "core/tensor.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/bitwise.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/special.h"
#include "ops/elementwise/ternary.h"
#include "ops/elementwise/trigonometry.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/linear/matmul.h"
#include "ops/norm/softmax.h"
#include "ops/shape/arrange.h"

namespace flow {

Tensor Tensor::add(const Scalar& other, Site site) const {
  return flow::add(TensorArg(*this, site), other);
}

Tensor Tensor::add(const Scalar& other, const AddOptions& options, Site site) const {
  return flow::add(TensorArg(*this, site), other, options);
}

Tensor Tensor::sub(const TensorArg& other, const AddOptions& options) const {
  return flow::sub(TensorArg(*this, other.site()), other, options);
}

Tensor Tensor::sub(const Scalar& other, Site site) const {
  return flow::sub(TensorArg(*this, site), other);
}

Tensor Tensor::sub(const Scalar& other, const AddOptions& options, Site site) const {
  return flow::sub(TensorArg(*this, site), other, options);
}

Tensor Tensor::mul(const Scalar& other, Site site) const {
  return flow::mul(TensorArg(*this, site), other);
}

Tensor Tensor::div(const Scalar& other, Site site) const {
  return flow::div(TensorArg(*this, site), other);
}

Tensor Tensor::div(const TensorArg& other, const DivOptions& options) const {
  return flow::div(TensorArg(*this, other.site()), other, options);
}

Tensor Tensor::div(const Scalar& other, const DivOptions& options, Site site) const {
  return flow::div(TensorArg(*this, site), other, options);
}

Tensor Tensor::pow(const TensorArg& exponent) const {
  return flow::pow(TensorArg(*this, exponent.site()), exponent);
}

Tensor Tensor::floor_divide(const TensorArg& other) const {
  return flow::floor_divide(TensorArg(*this, other.site()), other);
}

Tensor Tensor::floor_divide(const Scalar& other, Site site) const {
  return flow::floor_divide(TensorArg(*this, site), other);
}

Tensor Tensor::fmod(const TensorArg& other) const {
  return flow::fmod(TensorArg(*this, other.site()), other);
}

Tensor Tensor::fmod(const Scalar& other, Site site) const {
  return flow::fmod(TensorArg(*this, site), other);
}

Tensor Tensor::remainder(const TensorArg& other) const {
  return flow::remainder(TensorArg(*this, other.site()), other);
}

Tensor Tensor::remainder(const Scalar& other, Site site) const {
  return flow::remainder(TensorArg(*this, site), other);
}

Tensor Tensor::maximum(const TensorArg& other) const {
  return flow::maximum(TensorArg(*this, other.site()), other);
}

Tensor Tensor::maximum(const Scalar& other, Site site) const {
  return flow::maximum(TensorArg(*this, site), other);
}

Tensor Tensor::minimum(const TensorArg& other) const {
  return flow::minimum(TensorArg(*this, other.site()), other);
}

Tensor Tensor::minimum(const Scalar& other, Site site) const {
  return flow::minimum(TensorArg(*this, site), other);
}

Tensor Tensor::atan2(const TensorArg& other) const {
  return flow::atan2(TensorArg(*this, other.site()), other);
}

Tensor Tensor::hypot(const TensorArg& other) const {
  return flow::hypot(TensorArg(*this, other.site()), other);
}

Tensor Tensor::logaddexp(const TensorArg& other) const {
  return flow::logaddexp(TensorArg(*this, other.site()), other);
}

Tensor Tensor::xlogy(const TensorArg& other) const {
  return flow::xlogy(TensorArg(*this, other.site()), other);
}

Tensor Tensor::xlogy(const Scalar& other, Site site) const {
  return flow::xlogy(TensorArg(*this, site), other);
}

Tensor Tensor::addcmul(const TensorArg& a, const TensorArg& b) const {
  return flow::addcmul(TensorArg(*this, a.site()), a, b);
}

Tensor Tensor::addcmul(const TensorArg& a, const TensorArg& b, const AddcOptions& options) const {
  return flow::addcmul(TensorArg(*this, a.site()), a, b, options);
}

Tensor Tensor::addcdiv(const TensorArg& a, const TensorArg& b) const {
  return flow::addcdiv(TensorArg(*this, a.site()), a, b);
}

Tensor Tensor::addcdiv(const TensorArg& a, const TensorArg& b, const AddcOptions& options) const {
  return flow::addcdiv(TensorArg(*this, a.site()), a, b, options);
}

Tensor Tensor::lerp(const TensorArg& end, const TensorArg& weight) const {
  return flow::lerp(TensorArg(*this, end.site()), end, weight);
}

Tensor Tensor::lerp(const TensorArg& end, const Scalar& weight) const {
  return flow::lerp(TensorArg(*this, end.site()), end, weight);
}

Tensor Tensor::mm(const TensorArg& other) const {
  return flow::mm(TensorArg(*this, other.site()), other);
}

Tensor Tensor::bmm(const TensorArg& other) const {
  return flow::bmm(TensorArg(*this, other.site()), other);
}

Tensor Tensor::mv(const TensorArg& other) const {
  return flow::mv(TensorArg(*this, other.site()), other);
}

Tensor Tensor::dot(const TensorArg& other) const {
  return flow::dot(TensorArg(*this, other.site()), other);
}

Tensor Tensor::outer(const TensorArg& other) const {
  return flow::outer(TensorArg(*this, other.site()), other);
}

Tensor Tensor::addmm(const TensorArg& mat1, const TensorArg& mat2) const {
  return flow::addmm(TensorArg(*this, mat1.site()), mat1, mat2);
}

Tensor Tensor::addmm(const TensorArg& mat1, const TensorArg& mat2,
                     const AddmmOptions& options) const {
  return flow::addmm(TensorArg(*this, mat1.site()), mat1, mat2, options);
}

Tensor Tensor::baddbmm(const TensorArg& batch1, const TensorArg& batch2) const {
  return flow::baddbmm(TensorArg(*this, batch1.site()), batch1, batch2);
}

Tensor Tensor::baddbmm(const TensorArg& batch1, const TensorArg& batch2,
                       const AddmmOptions& options) const {
  return flow::baddbmm(TensorArg(*this, batch1.site()), batch1, batch2, options);
}

Tensor Tensor::sign(Site site) const {
  return flow::sign(TensorArg(*this, site));
}

Tensor Tensor::square(Site site) const {
  return flow::square(TensorArg(*this, site));
}

Tensor Tensor::floor(Site site) const {
  return flow::floor(TensorArg(*this, site));
}

Tensor Tensor::ceil(Site site) const {
  return flow::ceil(TensorArg(*this, site));
}

Tensor Tensor::round(Site site) const {
  return flow::round(TensorArg(*this, site));
}

Tensor Tensor::round(const RoundOptions& options, Site site) const {
  return flow::round(TensorArg(*this, site), options);
}

Tensor Tensor::trunc(Site site) const {
  return flow::trunc(TensorArg(*this, site));
}

Tensor Tensor::frac(Site site) const {
  return flow::frac(TensorArg(*this, site));
}

Tensor Tensor::exp2(Site site) const {
  return flow::exp2(TensorArg(*this, site));
}

Tensor Tensor::expm1(Site site) const {
  return flow::expm1(TensorArg(*this, site));
}

Tensor Tensor::log2(Site site) const {
  return flow::log2(TensorArg(*this, site));
}

Tensor Tensor::log10(Site site) const {
  return flow::log10(TensorArg(*this, site));
}

Tensor Tensor::log1p(Site site) const {
  return flow::log1p(TensorArg(*this, site));
}

Tensor Tensor::rsqrt(Site site) const {
  return flow::rsqrt(TensorArg(*this, site));
}

Tensor Tensor::reciprocal(Site site) const {
  return flow::reciprocal(TensorArg(*this, site));
}

Tensor Tensor::sin(Site site) const {
  return flow::sin(TensorArg(*this, site));
}

Tensor Tensor::cos(Site site) const {
  return flow::cos(TensorArg(*this, site));
}

Tensor Tensor::tan(Site site) const {
  return flow::tan(TensorArg(*this, site));
}

Tensor Tensor::asin(Site site) const {
  return flow::asin(TensorArg(*this, site));
}

Tensor Tensor::acos(Site site) const {
  return flow::acos(TensorArg(*this, site));
}

Tensor Tensor::atan(Site site) const {
  return flow::atan(TensorArg(*this, site));
}

Tensor Tensor::sinh(Site site) const {
  return flow::sinh(TensorArg(*this, site));
}

Tensor Tensor::cosh(Site site) const {
  return flow::cosh(TensorArg(*this, site));
}

Tensor Tensor::asinh(Site site) const {
  return flow::asinh(TensorArg(*this, site));
}

Tensor Tensor::acosh(Site site) const {
  return flow::acosh(TensorArg(*this, site));
}

Tensor Tensor::atanh(Site site) const {
  return flow::atanh(TensorArg(*this, site));
}

Tensor Tensor::erf(Site site) const {
  return flow::erf(TensorArg(*this, site));
}

Tensor Tensor::erfc(Site site) const {
  return flow::erfc(TensorArg(*this, site));
}

Tensor Tensor::sinc(Site site) const {
  return flow::sinc(TensorArg(*this, site));
}

Tensor Tensor::clamp(const ClampOptions& options, Site site) const {
  return flow::clamp(TensorArg(*this, site), options);
}

Tensor Tensor::clamp(const TensorArg& min, const TensorArg& max) const {
  return flow::clamp(TensorArg(*this, min.site()), min, max);
}

Tensor Tensor::clip(const ClampOptions& options, Site site) const {
  return flow::clip(TensorArg(*this, site), options);
}

Tensor Tensor::nan_to_num(Site site) const {
  return flow::nan_to_num(TensorArg(*this, site));
}

Tensor Tensor::nan_to_num(const NanToNumOptions& options, Site site) const {
  return flow::nan_to_num(TensorArg(*this, site), options);
}

Tensor Tensor::softmax(int64_t dim, Site site) const {
  return flow::softmax(TensorArg(*this, site), dim);
}

Tensor Tensor::softmax(int64_t dim, const SoftmaxOptions& options, Site site) const {
  return flow::softmax(TensorArg(*this, site), dim, options);
}

Tensor Tensor::log_softmax(int64_t dim, Site site) const {
  return flow::log_softmax(TensorArg(*this, site), dim);
}

Tensor Tensor::log_softmax(int64_t dim, const SoftmaxOptions& options, Site site) const {
  return flow::log_softmax(TensorArg(*this, site), dim, options);
}

Tensor Tensor::eq(const TensorArg& other) const {
  return flow::eq(TensorArg(*this, other.site()), other);
}

Tensor Tensor::eq(const Scalar& other, Site site) const {
  return flow::eq(TensorArg(*this, site), other);
}

Tensor Tensor::ne(const TensorArg& other) const {
  return flow::ne(TensorArg(*this, other.site()), other);
}

Tensor Tensor::ne(const Scalar& other, Site site) const {
  return flow::ne(TensorArg(*this, site), other);
}

Tensor Tensor::lt(const TensorArg& other) const {
  return flow::lt(TensorArg(*this, other.site()), other);
}

Tensor Tensor::lt(const Scalar& other, Site site) const {
  return flow::lt(TensorArg(*this, site), other);
}

Tensor Tensor::le(const TensorArg& other) const {
  return flow::le(TensorArg(*this, other.site()), other);
}

Tensor Tensor::le(const Scalar& other, Site site) const {
  return flow::le(TensorArg(*this, site), other);
}

Tensor Tensor::gt(const TensorArg& other) const {
  return flow::gt(TensorArg(*this, other.site()), other);
}

Tensor Tensor::gt(const Scalar& other, Site site) const {
  return flow::gt(TensorArg(*this, site), other);
}

Tensor Tensor::ge(const TensorArg& other) const {
  return flow::ge(TensorArg(*this, other.site()), other);
}

Tensor Tensor::ge(const Scalar& other, Site site) const {
  return flow::ge(TensorArg(*this, site), other);
}

Tensor Tensor::logical_and(const TensorArg& other) const {
  return flow::logical_and(TensorArg(*this, other.site()), other);
}

Tensor Tensor::logical_or(const TensorArg& other) const {
  return flow::logical_or(TensorArg(*this, other.site()), other);
}

Tensor Tensor::logical_xor(const TensorArg& other) const {
  return flow::logical_xor(TensorArg(*this, other.site()), other);
}

Tensor Tensor::logical_not(Site site) const {
  return flow::logical_not(TensorArg(*this, site));
}

Tensor Tensor::isnan(Site site) const {
  return flow::isnan(TensorArg(*this, site));
}

Tensor Tensor::isinf(Site site) const {
  return flow::isinf(TensorArg(*this, site));
}

Tensor Tensor::isfinite(Site site) const {
  return flow::isfinite(TensorArg(*this, site));
}

Tensor Tensor::isclose(const TensorArg& other) const {
  return flow::isclose(TensorArg(*this, other.site()), other);
}

Tensor Tensor::isclose(const TensorArg& other, const CloseOptions& options) const {
  return flow::isclose(TensorArg(*this, other.site()), other, options);
}

bool Tensor::allclose(const TensorArg& other) const {
  return flow::allclose(TensorArg(*this, other.site()), other);
}

bool Tensor::allclose(const TensorArg& other, const CloseOptions& options) const {
  return flow::allclose(TensorArg(*this, other.site()), other, options);
}

bool Tensor::equal(const TensorArg& other) const {
  return flow::equal(TensorArg(*this, other.site()), other);
}

Tensor Tensor::erfinv(Site site) const {
  return flow::erfinv(TensorArg(*this, site));
}

Tensor Tensor::lgamma(Site site) const {
  return flow::lgamma(TensorArg(*this, site));
}

Tensor Tensor::digamma(Site site) const {
  return flow::digamma(TensorArg(*this, site));
}

Tensor Tensor::bitwise_and(const TensorArg& other) const {
  return flow::bitwise_and(TensorArg(*this, other.site()), other);
}

Tensor Tensor::bitwise_and(const Scalar& other, Site site) const {
  return flow::bitwise_and(TensorArg(*this, site), other);
}

Tensor Tensor::bitwise_or(const TensorArg& other) const {
  return flow::bitwise_or(TensorArg(*this, other.site()), other);
}

Tensor Tensor::bitwise_or(const Scalar& other, Site site) const {
  return flow::bitwise_or(TensorArg(*this, site), other);
}

Tensor Tensor::bitwise_xor(const TensorArg& other) const {
  return flow::bitwise_xor(TensorArg(*this, other.site()), other);
}

Tensor Tensor::bitwise_xor(const Scalar& other, Site site) const {
  return flow::bitwise_xor(TensorArg(*this, site), other);
}

Tensor Tensor::bitwise_left_shift(const TensorArg& other) const {
  return flow::bitwise_left_shift(TensorArg(*this, other.site()), other);
}

Tensor Tensor::bitwise_left_shift(const Scalar& other, Site site) const {
  return flow::bitwise_left_shift(TensorArg(*this, site), other);
}

Tensor Tensor::bitwise_right_shift(const TensorArg& other) const {
  return flow::bitwise_right_shift(TensorArg(*this, other.site()), other);
}

Tensor Tensor::bitwise_right_shift(const Scalar& other, Site site) const {
  return flow::bitwise_right_shift(TensorArg(*this, site), other);
}

Tensor Tensor::bitwise_not(Site site) const {
  return flow::bitwise_not(TensorArg(*this, site));
}

}  // namespace flow
