#include "ops/elementwise/bitwise.h"

#include "ops/elementwise/row_calls.h"

namespace flow {

namespace ops {

void register_bitwise(OpTable& table) {
  add_ops(table, BitRows());
}

}  // namespace ops

using ops::number_like;

Tensor bitwise_and(const TensorArg& a, const TensorArg& b) {
  return ops::run<ops::BitwiseAnd>(a, b);
}

Tensor bitwise_and(const TensorArg& a, const Scalar& b) {
  return bitwise_and(a, number_like(a, b));
}

Tensor bitwise_or(const TensorArg& a, const TensorArg& b) {
  return ops::run<ops::BitwiseOr>(a, b);
}

Tensor bitwise_or(const TensorArg& a, const Scalar& b) {
  return bitwise_or(a, number_like(a, b));
}

Tensor bitwise_xor(const TensorArg& a, const TensorArg& b) {
  return ops::run<ops::BitwiseXor>(a, b);
}

Tensor bitwise_xor(const TensorArg& a, const Scalar& b) {
  return bitwise_xor(a, number_like(a, b));
}

Tensor bitwise_not(const TensorArg& x) {
  return ops::run<ops::BitwiseNot>(x);
}

Tensor bitwise_left_shift(const TensorArg& a, const TensorArg& b) {
  return ops::run<ops::LeftShift>(a, b);
}

Tensor bitwise_left_shift(const TensorArg& a, const Scalar& b) {
  return bitwise_left_shift(a, number_like(a, b));
}

Tensor bitwise_right_shift(const TensorArg& a, const TensorArg& b) {
  return ops::run<ops::RightShift>(a, b);
}

Tensor bitwise_right_shift(const TensorArg& a, const Scalar& b) {
  return bitwise_right_shift(a, number_like(a, b));
}

Tensor operator&(const TensorArg& a, const TensorArg& b) {
  return bitwise_and(a, b);
}

Tensor operator|(const TensorArg& a, const TensorArg& b) {
  return bitwise_or(a, b);
}

Tensor operator^(const TensorArg& a, const TensorArg& b) {
  return bitwise_xor(a, b);
}

Tensor operator~(const TensorArg& x) {
  return bitwise_not(x);
}

Tensor PointwiseMethods::bitwise_and(const TensorArg& other) const {
  return flow::bitwise_and(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::bitwise_and(const Scalar& other, Site site) const {
  return flow::bitwise_and(TensorArg(self(), site), other);
}

Tensor PointwiseMethods::bitwise_or(const TensorArg& other) const {
  return flow::bitwise_or(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::bitwise_or(const Scalar& other, Site site) const {
  return flow::bitwise_or(TensorArg(self(), site), other);
}

Tensor PointwiseMethods::bitwise_xor(const TensorArg& other) const {
  return flow::bitwise_xor(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::bitwise_xor(const Scalar& other, Site site) const {
  return flow::bitwise_xor(TensorArg(self(), site), other);
}

Tensor PointwiseMethods::bitwise_left_shift(const TensorArg& other) const {
  return flow::bitwise_left_shift(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::bitwise_left_shift(const Scalar& other, Site site) const {
  return flow::bitwise_left_shift(TensorArg(self(), site), other);
}

Tensor PointwiseMethods::bitwise_right_shift(const TensorArg& other) const {
  return flow::bitwise_right_shift(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::bitwise_right_shift(const Scalar& other, Site site) const {
  return flow::bitwise_right_shift(TensorArg(self(), site), other);
}

Tensor PointwiseMethods::bitwise_not(Site site) const {
  return flow::bitwise_not(TensorArg(self(), site));
}

Tensor& operator&=(Tensor& a, const TensorArg& b) {
  a.bitwise_and_(b);
  return a;
}

Tensor& operator|=(Tensor& a, const TensorArg& b) {
  a.bitwise_or_(b);
  return a;
}

Tensor& operator^=(Tensor& a, const TensorArg& b) {
  a.bitwise_xor_(b);
  return a;
}

}  // namespace flow
