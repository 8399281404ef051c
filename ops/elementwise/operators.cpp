// The operators of ops/elementwise/binary.h, and the methods of Tensor for its functions.
#include "ops/elementwise/binary.h"
#include "ops/elementwise/binary_op.h"
#include "ops/promotion.h"

namespace flow {

using ops::dispatch_promoted_in_place;
using ops::dispatch_scalar;
using ops::dispatch_scalar_in_place;
using ops::Promotion;

Tensor operator+(const TensorArg& a, const TensorArg& b) {
  return add(a, b);
}

Tensor operator+(const TensorArg& a, const Scalar& b) {
  return add(a, b);
}

Tensor operator+(const Scalar& a, const TensorArg& b) {
  return add(b, a);
}

Tensor operator-(const TensorArg& a, const TensorArg& b) {
  return sub(a, b);
}

Tensor operator-(const TensorArg& a, const Scalar& b) {
  return sub(a, b);
}

Tensor operator-(const Scalar& a, const TensorArg& b) {
  return dispatch_scalar(ops::kRsubScalar, b, a);
}

Tensor operator*(const TensorArg& a, const TensorArg& b) {
  return mul(a, b);
}

Tensor operator*(const TensorArg& a, const Scalar& b) {
  return mul(a, b);
}

Tensor operator*(const Scalar& a, const TensorArg& b) {
  return mul(b, a);
}

Tensor operator/(const TensorArg& a, const TensorArg& b) {
  return div(a, b);
}

Tensor operator/(const TensorArg& a, const Scalar& b) {
  return div(a, b);
}

Tensor operator/(const Scalar& a, const TensorArg& b) {
  return dispatch_scalar(ops::kRdivScalar, b, a, Promotion::kToFloating);
}

Tensor& operator+=(Tensor& a, const TensorArg& b) {
  a.add_(b);
  return a;
}

Tensor& operator+=(Tensor& a, const ScalarArg& b) {
  a.add_(b.value, b.site);
  return a;
}

Tensor& operator-=(Tensor& a, const TensorArg& b) {
  a.sub_(b);
  return a;
}

Tensor& operator-=(Tensor& a, const ScalarArg& b) {
  a.sub_(b.value, b.site);
  return a;
}

Tensor& operator*=(Tensor& a, const TensorArg& b) {
  a.mul_(b);
  return a;
}

Tensor& operator*=(Tensor& a, const ScalarArg& b) {
  a.mul_(b.value, b.site);
  return a;
}

Tensor& operator/=(Tensor& a, const TensorArg& b) {
  a.div_(b);
  return a;
}

Tensor& operator/=(Tensor& a, const ScalarArg& b) {
  a.div_(b.value, b.site);
  return a;
}

// The site of `x.add(y)` is that of y.
Tensor Tensor::add(const TensorArg& other) const {
  return flow::add(TensorArg(*this, other.site()), other);
}

Tensor Tensor::add(const TensorArg& other, const AddOptions& options) const {
  return flow::add(TensorArg(*this, other.site()), other, options);
}

Tensor Tensor::sub(const TensorArg& other) const {
  return flow::sub(TensorArg(*this, other.site()), other);
}

Tensor Tensor::mul(const TensorArg& other) const {
  return flow::mul(TensorArg(*this, other.site()), other);
}

Tensor Tensor::div(const TensorArg& other) const {
  return flow::div(TensorArg(*this, other.site()), other);
}

Tensor Tensor::pow(const Scalar& exponent, Site site) const {
  return flow::pow(TensorArg(*this, site), exponent);
}

const Tensor& Tensor::add_(const TensorArg& other) const {
  return add_(other, AddOptions{});
}

const Tensor& Tensor::add_(const TensorArg& other, const AddOptions& options) const {
  ops::check_alpha(options.alpha, *this, other, "add_");
  const ops::AddAttrs attrs{options.alpha};
  dispatch_promoted_in_place(ops::kAdd, TensorArg(*this, other.site()), other, &attrs);
  return *this;
}

const Tensor& Tensor::add_(const Scalar& other, Site site) const {
  dispatch_scalar_in_place(ops::kAddScalar, *this, other, site);
  return *this;
}

const Tensor& Tensor::sub_(const TensorArg& other) const {
  dispatch_promoted_in_place(ops::kSub, TensorArg(*this, other.site()), other, nullptr);
  return *this;
}

const Tensor& Tensor::sub_(const Scalar& other, Site site) const {
  dispatch_scalar_in_place(ops::kSubScalar, *this, other, site);
  return *this;
}

const Tensor& Tensor::mul_(const TensorArg& other) const {
  dispatch_promoted_in_place(ops::kMul, TensorArg(*this, other.site()), other, nullptr);
  return *this;
}

const Tensor& Tensor::mul_(const Scalar& other, Site site) const {
  dispatch_scalar_in_place(ops::kMulScalar, *this, other, site);
  return *this;
}

const Tensor& Tensor::div_(const TensorArg& other) const {
  dispatch_promoted_in_place(ops::kDiv, TensorArg(*this, other.site()), other, nullptr,
                             Promotion::kToFloating);
  return *this;
}

const Tensor& Tensor::div_(const Scalar& other, Site site) const {
  dispatch_scalar_in_place(ops::kDivScalar, *this, other, site, Promotion::kToFloating);
  return *this;
}

}  // namespace flow
