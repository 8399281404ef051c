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

// The site of `x.add(y)` is the site of y.
Tensor PointwiseMethods::add(const TensorArg& other) const {
  return flow::add(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::add(const TensorArg& other, const AddOptions& options) const {
  return flow::add(TensorArg(self(), other.site()), other, options);
}

Tensor PointwiseMethods::sub(const TensorArg& other) const {
  return flow::sub(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::mul(const TensorArg& other) const {
  return flow::mul(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::div(const TensorArg& other) const {
  return flow::div(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::pow(const Scalar& exponent, Site site) const {
  return flow::pow(TensorArg(self(), site), exponent);
}

const Tensor& InPlaceMethods::add_(const TensorArg& other) const {
  return add_(other, AddOptions{});
}

const Tensor& InPlaceMethods::add_(const TensorArg& other, const AddOptions& options) const {
  ops::check_alpha(options.alpha, self(), other, "add_");
  const ops::AddAttrs attrs{options.alpha};
  dispatch_promoted_in_place(ops::kAdd, TensorArg(self(), other.site()), other, &attrs);
  return self();
}

const Tensor& InPlaceMethods::add_(const Scalar& other, Site site) const {
  dispatch_scalar_in_place(ops::kAddScalar, self(), other, site);
  return self();
}

const Tensor& InPlaceMethods::sub_(const TensorArg& other) const {
  dispatch_promoted_in_place(ops::kSub, TensorArg(self(), other.site()), other, nullptr);
  return self();
}

const Tensor& InPlaceMethods::sub_(const Scalar& other, Site site) const {
  dispatch_scalar_in_place(ops::kSubScalar, self(), other, site);
  return self();
}

const Tensor& InPlaceMethods::mul_(const TensorArg& other) const {
  dispatch_promoted_in_place(ops::kMul, TensorArg(self(), other.site()), other, nullptr);
  return self();
}

const Tensor& InPlaceMethods::mul_(const Scalar& other, Site site) const {
  dispatch_scalar_in_place(ops::kMulScalar, self(), other, site);
  return self();
}

const Tensor& InPlaceMethods::div_(const TensorArg& other) const {
  dispatch_promoted_in_place(ops::kDiv, TensorArg(self(), other.site()), other, nullptr,
                             Promotion::kToFloating);
  return self();
}

const Tensor& InPlaceMethods::div_(const Scalar& other, Site site) const {
  dispatch_scalar_in_place(ops::kDivScalar, self(), other, site, Promotion::kToFloating);
  return self();
}

Tensor PointwiseMethods::add(const Scalar& other, Site site) const {
  return flow::add(TensorArg(self(), site), other);
}

Tensor PointwiseMethods::add(const Scalar& other, const AddOptions& options, Site site) const {
  return flow::add(TensorArg(self(), site), other, options);
}

Tensor PointwiseMethods::sub(const TensorArg& other, const AddOptions& options) const {
  return flow::sub(TensorArg(self(), other.site()), other, options);
}

Tensor PointwiseMethods::sub(const Scalar& other, Site site) const {
  return flow::sub(TensorArg(self(), site), other);
}

Tensor PointwiseMethods::sub(const Scalar& other, const AddOptions& options, Site site) const {
  return flow::sub(TensorArg(self(), site), other, options);
}

Tensor PointwiseMethods::mul(const Scalar& other, Site site) const {
  return flow::mul(TensorArg(self(), site), other);
}

Tensor PointwiseMethods::div(const Scalar& other, Site site) const {
  return flow::div(TensorArg(self(), site), other);
}

Tensor PointwiseMethods::div(const TensorArg& other, const DivOptions& options) const {
  return flow::div(TensorArg(self(), other.site()), other, options);
}

Tensor PointwiseMethods::div(const Scalar& other, const DivOptions& options, Site site) const {
  return flow::div(TensorArg(self(), site), other, options);
}

Tensor PointwiseMethods::pow(const TensorArg& exponent) const {
  return flow::pow(TensorArg(self(), exponent.site()), exponent);
}

Tensor PointwiseMethods::floor_divide(const TensorArg& other) const {
  return flow::floor_divide(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::floor_divide(const Scalar& other, Site site) const {
  return flow::floor_divide(TensorArg(self(), site), other);
}

Tensor PointwiseMethods::fmod(const TensorArg& other) const {
  return flow::fmod(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::fmod(const Scalar& other, Site site) const {
  return flow::fmod(TensorArg(self(), site), other);
}

Tensor PointwiseMethods::remainder(const TensorArg& other) const {
  return flow::remainder(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::remainder(const Scalar& other, Site site) const {
  return flow::remainder(TensorArg(self(), site), other);
}

Tensor PointwiseMethods::maximum(const TensorArg& other) const {
  return flow::maximum(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::maximum(const Scalar& other, Site site) const {
  return flow::maximum(TensorArg(self(), site), other);
}

Tensor PointwiseMethods::minimum(const TensorArg& other) const {
  return flow::minimum(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::minimum(const Scalar& other, Site site) const {
  return flow::minimum(TensorArg(self(), site), other);
}

Tensor PointwiseMethods::hypot(const TensorArg& other) const {
  return flow::hypot(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::logaddexp(const TensorArg& other) const {
  return flow::logaddexp(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::xlogy(const TensorArg& other) const {
  return flow::xlogy(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::xlogy(const Scalar& other, Site site) const {
  return flow::xlogy(TensorArg(self(), site), other);
}

}  // namespace flow
