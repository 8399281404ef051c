// Functions of two operands that write into the first.
#include "ops/elementwise/in_place.h"

#include "core/dispatch.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/binary_op.h"
#include "ops/elementwise/old_value.h"
#include "ops/elementwise/row_calls.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/named_errors.h"
#include "ops/promotion.h"
#include "ops/shape/concat.h"

namespace flow {

using ops::dispatch_promoted_in_place;
using ops::dispatch_scalar_in_place;

namespace {

const Tensor& run_in_place(const OpDef& op, const TensorArg& x, const TensorArg& b) {
  return ops::named_in_place(op, x.site(), [&]() -> const Tensor& {
    if (is_floating(x->dtype()) && ops::reads_old_value(op, {&x.tensor(), &b.tensor()})) {
      return ops::write_from_copy(
          x, [&](const TensorArg& old) { return ops::dispatch_promoted(op, old, b); });
    }
    dispatch_promoted_in_place(op, TensorArg(x, b.site()), b, nullptr);
    return x;
  });
}

const Tensor& run_in_place(const OpDef& op, const TensorArg& x, const Scalar& b) {
  return ops::named_in_place(op, x.site(), [&]() -> const Tensor& {
    if (is_floating(x->dtype()) && ops::reads_old_value(op, {&x.tensor()})) {
      return ops::write_from_copy(
          x, [&](const TensorArg& old) { return ops::dispatch_scalar(op, old, b); });
    }
    dispatch_scalar_in_place(op, x, b, x.site());
    return x;
  });
}

}  // namespace

const Tensor& fmod_(const TensorArg& x, const TensorArg& b) {
  return run_in_place(ops::op_of<ops::Fmod>(), x, b);
}

const Tensor& fmod_(const TensorArg& x, const Scalar& b) {
  return run_in_place(ops::op_of<ops::FmodNumber>(), x, ops::rounded_like(x, b));
}

const Tensor& remainder_(const TensorArg& x, const TensorArg& b) {
  return run_in_place(ops::op_of<ops::Remainder>(), x, b);
}

const Tensor& remainder_(const TensorArg& x, const Scalar& b) {
  return run_in_place(ops::op_of<ops::RemainderNumber>(), x, ops::rounded_like(x, b));
}

const Tensor& floor_divide_(const TensorArg& x, const TensorArg& b) {
  return run_in_place(ops::op_of<ops::FloorDivide>(), x, b);
}

const Tensor& floor_divide_(const TensorArg& x, const Scalar& b) {
  return run_in_place(ops::op_of<ops::FloorDivideNumber>(), x, b);
}

const Tensor& selu_(const TensorArg& x) {
  return ops::write_over("selu_", x, {}, [](const TensorArg& old) { return selu(old); });
}

const Tensor& threshold_(const TensorArg& x, double threshold, double value) {
  return ops::write_over("threshold_", x, {}, [&](const TensorArg& old) {
    return flow::threshold(old, threshold, value);
  });
}

const Tensor& celu_(const TensorArg& x, const CeluOptions& options) {
  return ops::write_over("celu_", x, {}, [&](const TensorArg& old) { return celu(old, options); });
}

const Tensor& elu_(const TensorArg& x, const EluOptions& options) {
  return ops::write_over("elu_", x, {}, [&](const TensorArg& old) { return elu(old, options); });
}

const Tensor& hardtanh_(const TensorArg& x, const HardtanhOptions& options) {
  return ops::write_over("hardtanh_", x, {},
                         [&](const TensorArg& old) { return hardtanh(old, options); });
}

const Tensor& leaky_relu_(const TensorArg& x, const LeakyReluOptions& options) {
  return ops::write_over("leaky_relu_", x, {},
                         [&](const TensorArg& old) { return leaky_relu(old, options); });
}

const Tensor& rrelu_(const TensorArg& x, const RReluOptions& options) {
  return ops::write_over("rrelu_", x, {},
                         [&](const TensorArg& old) { return rrelu(old, options); });
}

const Tensor& tril_(const TensorArg& x, int64_t diagonal) {
  return ops::named("tril_", x.site(), [&]() -> const Tensor& {
    return x->copy_({tril(x, diagonal), x.site()});
  });
}

const Tensor& triu_(const TensorArg& x, int64_t diagonal) {
  return ops::named("triu_", x.site(), [&]() -> const Tensor& {
    return x->copy_({triu(x, diagonal), x.site()});
  });
}

const Tensor& sub_(const TensorArg& x, const TensorArg& b, const AddOptions& options) {
  return ops::named("sub_", x.site(),
                    [&]() -> const Tensor& { return x->add_(b, {.alpha = -options.alpha}); });
}

const Tensor& div_(const TensorArg& x, const TensorArg& b, const DivOptions& options) {
  if (options.rounding_mode.empty()) return x->div_(b);
  const OpDef& op = ops::rounded_division(options.rounding_mode, ops::op_of<ops::TruncDivide>(),
                                          ops::op_of<ops::FloorDivide>(), x.site());
  return ops::named("div_", x.site(), [&]() -> const Tensor& { return run_in_place(op, x, b); });
}

const Tensor& div_(const TensorArg& x, const Scalar& b, const DivOptions& options) {
  if (options.rounding_mode.empty()) return x->div_(b, x.site());
  const OpDef& op =
      ops::rounded_division(options.rounding_mode, ops::op_of<ops::TruncDivideNumber>(),
                            ops::op_of<ops::FloorDivideNumber>(), x.site());
  return ops::named("div_", x.site(), [&]() -> const Tensor& { return run_in_place(op, x, b); });
}

const Tensor& pow_(const TensorArg& x, const TensorArg& exponent) {
  return run_in_place(ops::op_of<ops::Pow>(), x, exponent);
}

const Tensor& pow_(const TensorArg& x, const Scalar& exponent) {
  ops::check_exponent(x, exponent, x.site());
  return run_in_place(ops::op_of<ops::PowNumber>(), x, exponent);
}

const Tensor& clamp_min_(const TensorArg& x, const Scalar& min) {
  return ops::named("clamp_min_", x.site(),
                    [&]() -> const Tensor& { return clamp_(x, {.min = min}); });
}

const Tensor& clamp_max_(const TensorArg& x, const Scalar& max) {
  return ops::named("clamp_max_", x.site(),
                    [&]() -> const Tensor& { return clamp_(x, {.max = max}); });
}

const Tensor& InPlaceMethods::neg_(Site site) const {
  flow::neg_(TensorArg(self(), site));
  return self();
}

const Tensor& InPlaceMethods::abs_(Site site) const {
  flow::abs_(TensorArg(self(), site));
  return self();
}

const Tensor& InPlaceMethods::sign_(Site site) const {
  flow::sign_(TensorArg(self(), site));
  return self();
}

const Tensor& InPlaceMethods::square_(Site site) const {
  flow::square_(TensorArg(self(), site));
  return self();
}

const Tensor& InPlaceMethods::floor_(Site site) const {
  flow::floor_(TensorArg(self(), site));
  return self();
}

const Tensor& InPlaceMethods::ceil_(Site site) const {
  flow::ceil_(TensorArg(self(), site));
  return self();
}

const Tensor& InPlaceMethods::round_(Site site) const {
  flow::round_(TensorArg(self(), site));
  return self();
}

const Tensor& InPlaceMethods::trunc_(Site site) const {
  flow::trunc_(TensorArg(self(), site));
  return self();
}

const Tensor& InPlaceMethods::frac_(Site site) const {
  flow::frac_(TensorArg(self(), site));
  return self();
}

const Tensor& InPlaceMethods::exp_(Site site) const {
  flow::exp_(TensorArg(self(), site));
  return self();
}

const Tensor& InPlaceMethods::exp2_(Site site) const {
  flow::exp2_(TensorArg(self(), site));
  return self();
}

const Tensor& InPlaceMethods::expm1_(Site site) const {
  flow::expm1_(TensorArg(self(), site));
  return self();
}

const Tensor& InPlaceMethods::log_(Site site) const {
  flow::log_(TensorArg(self(), site));
  return self();
}

const Tensor& InPlaceMethods::log2_(Site site) const {
  flow::log2_(TensorArg(self(), site));
  return self();
}

const Tensor& InPlaceMethods::log10_(Site site) const {
  flow::log10_(TensorArg(self(), site));
  return self();
}

const Tensor& InPlaceMethods::log1p_(Site site) const {
  flow::log1p_(TensorArg(self(), site));
  return self();
}

const Tensor& InPlaceMethods::sqrt_(Site site) const {
  flow::sqrt_(TensorArg(self(), site));
  return self();
}

const Tensor& InPlaceMethods::rsqrt_(Site site) const {
  flow::rsqrt_(TensorArg(self(), site));
  return self();
}

const Tensor& InPlaceMethods::reciprocal_(Site site) const {
  flow::reciprocal_(TensorArg(self(), site));
  return self();
}

const Tensor& InPlaceMethods::sin_(Site site) const {
  flow::sin_(TensorArg(self(), site));
  return self();
}

const Tensor& InPlaceMethods::cos_(Site site) const {
  flow::cos_(TensorArg(self(), site));
  return self();
}

const Tensor& InPlaceMethods::tan_(Site site) const {
  flow::tan_(TensorArg(self(), site));
  return self();
}

const Tensor& InPlaceMethods::tanh_(Site site) const {
  flow::tanh_(TensorArg(self(), site));
  return self();
}

const Tensor& InPlaceMethods::erf_(Site site) const {
  flow::erf_(TensorArg(self(), site));
  return self();
}

const Tensor& InPlaceMethods::erfc_(Site site) const {
  flow::erfc_(TensorArg(self(), site));
  return self();
}

const Tensor& InPlaceMethods::sigmoid_(Site site) const {
  flow::sigmoid_(TensorArg(self(), site));
  return self();
}

const Tensor& InPlaceMethods::clamp_min_(const Scalar& min, Site site) const {
  flow::clamp_min_(TensorArg(self(), site), min);
  return self();
}

const Tensor& InPlaceMethods::clamp_max_(const Scalar& max, Site site) const {
  flow::clamp_max_(TensorArg(self(), site), max);
  return self();
}

const Tensor& InPlaceMethods::sub_(const TensorArg& other, const AddOptions& options) const {
  flow::sub_(TensorArg(self(), other.site()), other, options);
  return self();
}

const Tensor& InPlaceMethods::div_(const TensorArg& other, const DivOptions& options) const {
  flow::div_(TensorArg(self(), other.site()), other, options);
  return self();
}

const Tensor& InPlaceMethods::div_(const Scalar& other, const DivOptions& options,
                                   Site site) const {
  flow::div_(TensorArg(self(), site), other, options);
  return self();
}

const Tensor& InPlaceMethods::pow_(const TensorArg& exponent) const {
  flow::pow_(TensorArg(self(), exponent.site()), exponent);
  return self();
}

const Tensor& InPlaceMethods::pow_(const Scalar& exponent, Site site) const {
  flow::pow_(TensorArg(self(), site), exponent);
  return self();
}

const Tensor& InPlaceMethods::fmod_(const TensorArg& other) const {
  flow::fmod_(TensorArg(self(), other.site()), other);
  return self();
}

const Tensor& InPlaceMethods::fmod_(const Scalar& other, Site site) const {
  flow::fmod_(TensorArg(self(), site), other);
  return self();
}

const Tensor& InPlaceMethods::remainder_(const TensorArg& other) const {
  flow::remainder_(TensorArg(self(), other.site()), other);
  return self();
}

const Tensor& InPlaceMethods::remainder_(const Scalar& other, Site site) const {
  flow::remainder_(TensorArg(self(), site), other);
  return self();
}

const Tensor& InPlaceMethods::floor_divide_(const TensorArg& other) const {
  flow::floor_divide_(TensorArg(self(), other.site()), other);
  return self();
}

const Tensor& InPlaceMethods::floor_divide_(const Scalar& other, Site site) const {
  flow::floor_divide_(TensorArg(self(), site), other);
  return self();
}

const Tensor& InPlaceMethods::tril_(int64_t diagonal, Site site) const {
  flow::tril_(TensorArg(self(), site), diagonal);
  return self();
}

const Tensor& InPlaceMethods::triu_(int64_t diagonal, Site site) const {
  flow::triu_(TensorArg(self(), site), diagonal);
  return self();
}

}  // namespace flow
