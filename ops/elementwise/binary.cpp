#include "ops/elementwise/binary.h"

#include <cmath>

#include "core/dispatch.h"
#include "ops/creation/copy_op.h"
#include "ops/elementwise/binary_op.h"
#include "ops/elementwise/row_calls.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/named_errors.h"
#include "ops/number_range.h"
#include "ops/promotion.h"

namespace flow {

namespace ops {

void check_alpha(double alpha, const Tensor& a, const Tensor& b, const char* op, Site site) {
  if (is_floating(a.dtype()) || is_floating(b.dtype()) || is_whole_number(alpha)) {
    return;
  }
  throw InvalidArgument(
      str("[", op, "] alpha is ", alpha, " but both tensors are ", a.dtype(), " and ", b.dtype(),
          "; give a whole number or cast to a floating dtype"),
      site);
}

const OpDef& rounded_division(const std::string& rounding_mode, const OpDef& trunc,
                              const OpDef& floor, Site site) {
  if (rounding_mode == "trunc") return trunc;
  if (rounding_mode == "floor") return floor;
  throw InvalidArgument(
      str("[div] rounding_mode is '", rounding_mode, "'; give trunc or floor, or leave it empty"),
      site);
}

void check_exponent(const Tensor& base, const Scalar& exponent, Site site) {
  if (is_floating(base.dtype()) || exponent.is_floating()) return;
  if (exponent.to<int64_t>() >= 0) {
    check_fill_value(promote(base.dtype(), exponent), exponent, "pow", site);
    return;
  }
  throw InvalidArgument(str("[pow] a ", base.dtype(), " tensor to the negative power ", exponent,
                            " has no integer result; cast it to a floating dtype first"),
                        site);
}

void throw_division_by_zero() {
  throw InvalidArgument(
      "[div] an integer was divided by zero; mask zero divisors, or cast to a floating dtype");
}

Tensor trunc_divide(const TensorArg& a, const TensorArg& b) {
  return run<TruncDivide>(a, b);
}

Tensor trunc_divide(const TensorArg& a, const Scalar& b) {
  return run<TruncDivideNumber>(a, b);
}

void register_binary(OpTable& table) {
  add_ops(table, ArithmeticRows());
}

}  // namespace ops

// ---- functions

using ops::dispatch_promoted;
using ops::dispatch_promoted_in_place;
using ops::dispatch_scalar;
using ops::dispatch_scalar_in_place;
using ops::number_like;
using ops::Promotion;

namespace {

// alpha b, for a sum with `a` or a difference.
Scalar times(const TensorArg& a, const Scalar& b, double alpha, const char* op) {
  if (alpha == 1) return b;
  const bool is_whole = alpha == std::trunc(alpha) && std::abs(alpha) < 0x1p63;
  if (!b.is_floating() && is_whole) return b.to<int64_t>() * static_cast<int64_t>(alpha);
  if (is_floating(a->dtype()) || b.is_floating()) return b.to<double>() * alpha;
  throw InvalidArgument(
      str("[", op, "] alpha is ", alpha, " but the tensor is ", a->dtype(), " and the number is ",
          b, "; give a whole number or cast to a floating dtype"),
      a.site());
}

// bool tensors are refused as in PyTorch, because the difference of truth values is not obvious.
void check_difference(const TensorArg& a, const TensorArg& b) {
  if (a->dtype() != DType::kBool && b->dtype() != DType::kBool) [[likely]]
    return;
  throw InvalidArgument(str("[sub] is not defined for bool; use logical_not, logical_xor or cast ",
                            "first; received ", a->meta(), ", ", b->meta()),
                        a.site());
}

Tensor nonfinite_aware(const TensorArg& a, const TensorArg& b,
                       Tensor (*choose)(const TensorArg&, const TensorArg&)) {
  const Site site = a.site();
  Tensor chosen = choose(a, b);
  if (!is_floating(chosen.dtype())) return chosen;
  const Tensor without_a = where({isnan(a), site}, b, {chosen, site});
  return where({isnan(b), site}, a, {without_a, site});
}

// Whether one of two operands has no dims and a dtype that the 16 bits of their result cannot
// hold. As a number would, it keeps its value: both are computed in float32 (as in PyTorch).
bool keeps_number(const Tensor& a, const Tensor& b) {
  if (a.dtype() == b.dtype() || (a.dim() == 0) == (b.dim() == 0)) [[likely]]
    return false;
  const DType dtype = ops::result_dtype(a, b);
  return is_half(dtype) && (a.dim() == 0 ? a : b).dtype() != dtype;
}

template <class Row>
Tensor with_number(const TensorArg& a, const TensorArg& b) {
  if (!keeps_number(a, b)) [[likely]]
    return ops::run<Row>(a, b);
  const Site site = a.site();
  return ops::named(ops::op_of<Row>().name, site, [&] {
    const Tensor left = cast(a, DType::kFloat32), right = cast(b, DType::kFloat32);
    return cast({ops::run<Row>({left, site}, {right, site}), site}, ops::result_dtype(a, b));
  });
}

template <class Row>
void with_number_in_place(const Tensor& a, const TensorArg& b, ops::Promotion promotion) {
  if (!keeps_number(a, b)) [[likely]] {
    dispatch_promoted_in_place(ops::op_of<Row>(), TensorArg(a, b.site()), b, nullptr, promotion);
    return;
  }
  ops::named_in_place(ops::op_of<Row>(), b.site(), [&] {
    a.copy_({with_number<Row>({a, b.site()}, b), b.site()});
  });
}

}  // namespace

Tensor add(const TensorArg& a, const TensorArg& b) {
  return dispatch_promoted(ops::op_of<ops::Add>(), a, b, ops::AddAttrs{});
}

Tensor add(const TensorArg& a, const TensorArg& b, const AddOptions& options) {
  ops::check_alpha(options.alpha, a, b, "add", a.site());
  return dispatch_promoted(ops::op_of<ops::Add>(), a, b, ops::AddAttrs{options.alpha});
}

Tensor add(const TensorArg& a, const Scalar& b) {
  return ops::run<ops::AddNumber>(a, b);
}

Tensor add(const TensorArg& a, const Scalar& b, const AddOptions& options) {
  return add(a, times(a, b, options.alpha, "add"));
}

Tensor sub(const TensorArg& a, const TensorArg& b) {
  check_difference(a, b);
  return ops::run<ops::Sub>(a, b);
}

Tensor sub(const TensorArg& a, const TensorArg& b, const AddOptions& options) {
  check_difference(a, b);
  ops::check_alpha(options.alpha, a, b, "sub", a.site());
  return dispatch_promoted(ops::op_of<ops::Add>(), a, b, ops::AddAttrs{-options.alpha});
}

Tensor sub(const TensorArg& a, const Scalar& b) {
  check_difference(a, a);
  return ops::run<ops::SubNumber>(a, b);
}

Tensor sub(const TensorArg& a, const Scalar& b, const AddOptions& options) {
  check_difference(a, a);
  return sub(a, times(a, b, options.alpha, "sub"));
}

Tensor mul(const TensorArg& a, const TensorArg& b) {
  return with_number<ops::Mul>(a, b);
}

Tensor mul(const TensorArg& a, const Scalar& b) {
  return ops::run<ops::MulNumber>(a, b);
}

Tensor div(const TensorArg& a, const TensorArg& b) {
  return with_number<ops::Div>(a, b);
}

Tensor div(const TensorArg& a, const TensorArg& b, const DivOptions& options) {
  if (options.rounding_mode.empty()) return div(a, b);
  const OpDef& op = ops::rounded_division(options.rounding_mode, ops::op_of<ops::TruncDivide>(),
                                          ops::op_of<ops::FloorDivide>(), a.site());
  return ops::named("div", a.site(), [&] { return dispatch_promoted(op, a, b); });
}

Tensor div(const TensorArg& a, const Scalar& b) {
  return ops::run<ops::DivNumber>(a, b);
}

Tensor div(const TensorArg& a, const Scalar& b, const DivOptions& options) {
  if (options.rounding_mode.empty()) return div(a, b);
  const OpDef& op =
      ops::rounded_division(options.rounding_mode, ops::op_of<ops::TruncDivideNumber>(),
                            ops::op_of<ops::FloorDivideNumber>(), a.site());
  return ops::named("div", a.site(), [&] { return dispatch_scalar(op, a, b); });
}

Tensor pow(const TensorArg& a, const TensorArg& b) {
  return ops::run<ops::Pow>(a, b);
}

Tensor pow(const TensorArg& a, const Scalar& b) {
  ops::check_exponent(a, b, a.site());
  return ops::run<ops::PowNumber>(a, b);
}

Tensor pow(const Scalar& a, const TensorArg& b) {
  return ops::run<ops::NumberPow>(b, a);
}

Tensor floor_divide(const TensorArg& a, const TensorArg& b) {
  return ops::run<ops::FloorDivide>(a, b);
}

Tensor floor_divide(const TensorArg& a, const Scalar& b) {
  return ops::run<ops::FloorDivideNumber>(a, b);
}

Tensor fmod(const TensorArg& a, const TensorArg& b) {
  return ops::run<ops::Fmod>(a, b);
}

Tensor fmod(const TensorArg& a, const Scalar& b) {
  return ops::run<ops::FmodNumber>(a, ops::rounded_like(a, b));
}

Tensor remainder(const TensorArg& a, const TensorArg& b) {
  return ops::run<ops::Remainder>(a, b);
}

Tensor remainder(const TensorArg& a, const Scalar& b) {
  return ops::run<ops::RemainderNumber>(a, ops::rounded_like(a, b));
}

Tensor operator%(const TensorArg& a, const TensorArg& b) {
  return remainder(a, b);
}

Tensor operator%(const TensorArg& a, const Scalar& b) {
  return remainder(a, b);
}

Tensor logaddexp(const TensorArg& a, const TensorArg& b) {
  return ops::run<ops::Logaddexp>(a, b);
}

Tensor xlogy(const TensorArg& a, const TensorArg& b) {
  return ops::run<ops::Xlogy>(a, b);
}

Tensor xlogy(const TensorArg& a, const Scalar& b) {
  return xlogy(a, ops::floating_number_like(a, b));
}

Tensor hypot(const TensorArg& a, const TensorArg& b) {
  return ops::run<ops::Hypot>(a, b);
}

namespace {

// A bound that wraps around in the dtype of `a` would bound by another number.
Tensor bound_like(const TensorArg& a, const Scalar& bound, const char* op) {
  if (!bound.is_floating() && !ops::holds_number(a->dtype(), bound)) {
    throw InvalidArgument(
        str("[", op, "] ", bound, " does not fit into ", a->dtype(), "; cast the tensor"),
        a.site());
  }
  return number_like(a, bound);
}

}  // namespace

Tensor maximum(const TensorArg& a, const TensorArg& b) {
  return ops::run<ops::Maximum>(a, b);
}

Tensor maximum(const TensorArg& a, const Scalar& b) {
  return maximum(a, bound_like(a, b, "maximum"));
}

Tensor minimum(const TensorArg& a, const TensorArg& b) {
  return ops::run<ops::Minimum>(a, b);
}

Tensor minimum(const TensorArg& a, const Scalar& b) {
  return minimum(a, bound_like(a, b, "minimum"));
}

Tensor fmax(const TensorArg& a, const TensorArg& b) {
  return ops::named("fmax", a.site(), [&] { return nonfinite_aware(a, b, maximum); });
}

Tensor fmin(const TensorArg& a, const TensorArg& b) {
  return ops::named("fmin", a.site(), [&] { return nonfinite_aware(a, b, minimum); });
}

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
  return ops::run<ops::NumberSub>(b, a);
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
  return ops::run<ops::NumberDiv>(b, a);
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

const Tensor& operator+=(Tensor&& a, const TensorArg& b) {
  ops::check_is_seen("+=", a, b.site());
  return a.add_(b);
}

const Tensor& operator+=(Tensor&& a, const ScalarArg& b) {
  ops::check_is_seen("+=", a, b.site);
  return a.add_(b.value, b.site);
}

const Tensor& operator-=(Tensor&& a, const TensorArg& b) {
  ops::check_is_seen("-=", a, b.site());
  return a.sub_(b);
}

const Tensor& operator-=(Tensor&& a, const ScalarArg& b) {
  ops::check_is_seen("-=", a, b.site);
  return a.sub_(b.value, b.site);
}

const Tensor& operator*=(Tensor&& a, const TensorArg& b) {
  ops::check_is_seen("*=", a, b.site());
  return a.mul_(b);
}

const Tensor& operator*=(Tensor&& a, const ScalarArg& b) {
  ops::check_is_seen("*=", a, b.site);
  return a.mul_(b.value, b.site);
}

const Tensor& operator/=(Tensor&& a, const TensorArg& b) {
  ops::check_is_seen("/=", a, b.site());
  return a.div_(b);
}

const Tensor& operator/=(Tensor&& a, const ScalarArg& b) {
  ops::check_is_seen("/=", a, b.site);
  return a.div_(b.value, b.site);
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
  ops::check_alpha(options.alpha, self(), other, "add_", other.site());
  const ops::AddAttrs attrs{options.alpha};
  dispatch_promoted_in_place(ops::op_of<ops::Add>(), TensorArg(self(), other.site()), other,
                             &attrs);
  return self();
}

const Tensor& InPlaceMethods::add_(const Scalar& other, Site site) const {
  dispatch_scalar_in_place(ops::op_of<ops::AddNumber>(), self(), other, site);
  return self();
}

const Tensor& InPlaceMethods::sub_(const TensorArg& other) const {
  dispatch_promoted_in_place(ops::op_of<ops::Sub>(), TensorArg(self(), other.site()), other,
                             nullptr);
  return self();
}

const Tensor& InPlaceMethods::sub_(const Scalar& other, Site site) const {
  dispatch_scalar_in_place(ops::op_of<ops::SubNumber>(), self(), other, site);
  return self();
}

const Tensor& InPlaceMethods::mul_(const TensorArg& other) const {
  with_number_in_place<ops::Mul>(self(), other, ops::Promotion::kPlain);
  return self();
}

const Tensor& InPlaceMethods::mul_(const Scalar& other, Site site) const {
  dispatch_scalar_in_place(ops::op_of<ops::MulNumber>(), self(), other, site);
  return self();
}

const Tensor& InPlaceMethods::div_(const TensorArg& other) const {
  with_number_in_place<ops::Div>(self(), other, ops::Promotion::kToFloating);
  return self();
}

const Tensor& InPlaceMethods::div_(const Scalar& other, Site site) const {
  dispatch_scalar_in_place(ops::op_of<ops::DivNumber>(), self(), other, site,
                           Promotion::kToFloating);
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

Tensor PointwiseMethods::fmax(const TensorArg& other) const {
  return flow::fmax(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::fmin(const TensorArg& other) const {
  return flow::fmin(TensorArg(self(), other.site()), other);
}

}  // namespace flow
