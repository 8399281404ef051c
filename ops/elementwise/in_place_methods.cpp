// In-place methods that compute the function without underscore and write its result.
#include "ops/elementwise/binary.h"
#include "ops/elementwise/bitwise.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/old_value.h"
#include "ops/elementwise/special.h"
#include "ops/elementwise/trigonometry.h"
#include "ops/elementwise/unary.h"

namespace flow {

using ops::write_over;

namespace {

const Tensor& write_unary(const char* name, const Tensor& x, Site site,
                          Tensor (*function)(const TensorArg&)) {
  return write_over(name, {x, site}, {}, function);
}

const Tensor& write_binary(const char* name, const Tensor& x, const TensorArg& other,
                           Tensor (*function)(const TensorArg&, const TensorArg&)) {
  return write_over(name, {x, other.site()}, {&other.tensor()},
                    [&](const TensorArg& old) { return function(old, other); });
}

const Tensor& write_number(const char* name, const Tensor& x, const Scalar& other, Site site,
                           Tensor (*function)(const TensorArg&, const Scalar&)) {
  return write_over(name, {x, site}, {},
                    [&](const TensorArg& old) { return function(old, other); });
}

}  // namespace

const Tensor& InPlaceMethods::acos_(Site site) const {
  return write_unary("acos_", self(), site, flow::acos);
}

const Tensor& InPlaceMethods::acosh_(Site site) const {
  return write_unary("acosh_", self(), site, flow::acosh);
}

const Tensor& InPlaceMethods::asin_(Site site) const {
  return write_unary("asin_", self(), site, flow::asin);
}

const Tensor& InPlaceMethods::asinh_(Site site) const {
  return write_unary("asinh_", self(), site, flow::asinh);
}

const Tensor& InPlaceMethods::atan_(Site site) const {
  return write_unary("atan_", self(), site, flow::atan);
}

const Tensor& InPlaceMethods::atanh_(Site site) const {
  return write_unary("atanh_", self(), site, flow::atanh);
}

const Tensor& InPlaceMethods::sinh_(Site site) const {
  return write_unary("sinh_", self(), site, flow::sinh);
}

const Tensor& InPlaceMethods::cosh_(Site site) const {
  return write_unary("cosh_", self(), site, flow::cosh);
}

const Tensor& InPlaceMethods::sinc_(Site site) const {
  return write_unary("sinc_", self(), site, flow::sinc);
}

const Tensor& InPlaceMethods::deg2rad_(Site site) const {
  return write_unary("deg2rad_", self(), site, flow::deg2rad);
}

const Tensor& InPlaceMethods::rad2deg_(Site site) const {
  return write_unary("rad2deg_", self(), site, flow::rad2deg);
}

const Tensor& InPlaceMethods::lgamma_(Site site) const {
  return write_unary("lgamma_", self(), site, flow::lgamma);
}

const Tensor& InPlaceMethods::digamma_(Site site) const {
  return write_unary("digamma_", self(), site, flow::digamma);
}

const Tensor& InPlaceMethods::erfinv_(Site site) const {
  return write_unary("erfinv_", self(), site, flow::erfinv);
}

const Tensor& InPlaceMethods::logical_not_(Site site) const {
  return write_unary("logical_not_", self(), site, flow::logical_not);
}

const Tensor& InPlaceMethods::bitwise_not_(Site site) const {
  return write_unary("bitwise_not_", self(), site, flow::bitwise_not);
}

const Tensor& InPlaceMethods::i0_(Site site) const {
  return write_unary("i0_", self(), site, flow::i0);
}

const Tensor& InPlaceMethods::mvlgamma_(int64_t p, Site site) const {
  return write_over("mvlgamma_", {self(), site}, {},
                    [&](const TensorArg& old) { return flow::mvlgamma(old, p); });
}

const Tensor& InPlaceMethods::gcd_(const TensorArg& other) const {
  return write_binary("gcd_", self(), other, flow::gcd);
}

const Tensor& InPlaceMethods::lcm_(const TensorArg& other) const {
  return write_binary("lcm_", self(), other, flow::lcm);
}

const Tensor& InPlaceMethods::nextafter_(const TensorArg& other) const {
  return write_binary("nextafter_", self(), other, flow::nextafter);
}

const Tensor& InPlaceMethods::igamma_(const TensorArg& x) const {
  return write_binary("igamma_", self(), x, flow::igamma);
}

const Tensor& InPlaceMethods::igammac_(const TensorArg& x) const {
  return write_binary("igammac_", self(), x, flow::igammac);
}

const Tensor& InPlaceMethods::polygamma_(int64_t n, Site site) const {
  return write_over("polygamma_", {self(), site}, {},
                    [&](const TensorArg& old) { return flow::polygamma(n, old); });
}

const Tensor& InPlaceMethods::logit_(const LogitOptions& options, Site site) const {
  return write_over("logit_", {self(), site}, {},
                    [&](const TensorArg& old) { return flow::logit(old, options); });
}

const Tensor& InPlaceMethods::nan_to_num_(Site site) const {
  return nan_to_num_(NanToNumOptions{}, site);
}

const Tensor& InPlaceMethods::nan_to_num_(const NanToNumOptions& options, Site site) const {
  return write_over("nan_to_num_", {self(), site}, {},
                    [&](const TensorArg& old) { return flow::nan_to_num(old, options); });
}

const Tensor& InPlaceMethods::atan2_(const TensorArg& other) const {
  return write_binary("atan2_", self(), other, flow::atan2);
}

const Tensor& InPlaceMethods::hypot_(const TensorArg& other) const {
  return write_binary("hypot_", self(), other, flow::hypot);
}

const Tensor& InPlaceMethods::heaviside_(const TensorArg& other) const {
  return write_binary("heaviside_", self(), other, flow::heaviside);
}

const Tensor& InPlaceMethods::logical_and_(const TensorArg& other) const {
  return write_binary("logical_and_", self(), other, flow::logical_and);
}

const Tensor& InPlaceMethods::logical_or_(const TensorArg& other) const {
  return write_binary("logical_or_", self(), other, flow::logical_or);
}

const Tensor& InPlaceMethods::logical_xor_(const TensorArg& other) const {
  return write_binary("logical_xor_", self(), other, flow::logical_xor);
}

const Tensor& InPlaceMethods::xlogy_(const TensorArg& other) const {
  return write_binary("xlogy_", self(), other, flow::xlogy);
}

const Tensor& InPlaceMethods::xlogy_(const Scalar& other, Site site) const {
  return write_number("xlogy_", self(), other, site, flow::xlogy);
}

const Tensor& InPlaceMethods::copysign_(const TensorArg& other) const {
  return write_binary("copysign_", self(), other, flow::copysign);
}

const Tensor& InPlaceMethods::copysign_(const Scalar& other, Site site) const {
  return write_number("copysign_", self(), other, site, flow::copysign);
}

const Tensor& InPlaceMethods::eq_(const TensorArg& other) const {
  return write_binary("eq_", self(), other, flow::eq);
}

const Tensor& InPlaceMethods::eq_(const Scalar& other, Site site) const {
  return write_number("eq_", self(), other, site, flow::eq);
}

const Tensor& InPlaceMethods::ne_(const TensorArg& other) const {
  return write_binary("ne_", self(), other, flow::ne);
}

const Tensor& InPlaceMethods::ne_(const Scalar& other, Site site) const {
  return write_number("ne_", self(), other, site, flow::ne);
}

const Tensor& InPlaceMethods::lt_(const TensorArg& other) const {
  return write_binary("lt_", self(), other, flow::lt);
}

const Tensor& InPlaceMethods::lt_(const Scalar& other, Site site) const {
  return write_number("lt_", self(), other, site, flow::lt);
}

const Tensor& InPlaceMethods::le_(const TensorArg& other) const {
  return write_binary("le_", self(), other, flow::le);
}

const Tensor& InPlaceMethods::le_(const Scalar& other, Site site) const {
  return write_number("le_", self(), other, site, flow::le);
}

const Tensor& InPlaceMethods::gt_(const TensorArg& other) const {
  return write_binary("gt_", self(), other, flow::gt);
}

const Tensor& InPlaceMethods::gt_(const Scalar& other, Site site) const {
  return write_number("gt_", self(), other, site, flow::gt);
}

const Tensor& InPlaceMethods::ge_(const TensorArg& other) const {
  return write_binary("ge_", self(), other, flow::ge);
}

const Tensor& InPlaceMethods::ge_(const Scalar& other, Site site) const {
  return write_number("ge_", self(), other, site, flow::ge);
}

const Tensor& InPlaceMethods::bitwise_and_(const TensorArg& other) const {
  return write_binary("bitwise_and_", self(), other, flow::bitwise_and);
}

const Tensor& InPlaceMethods::bitwise_and_(const Scalar& other, Site site) const {
  return write_number("bitwise_and_", self(), other, site, flow::bitwise_and);
}

const Tensor& InPlaceMethods::bitwise_or_(const TensorArg& other) const {
  return write_binary("bitwise_or_", self(), other, flow::bitwise_or);
}

const Tensor& InPlaceMethods::bitwise_or_(const Scalar& other, Site site) const {
  return write_number("bitwise_or_", self(), other, site, flow::bitwise_or);
}

const Tensor& InPlaceMethods::bitwise_xor_(const TensorArg& other) const {
  return write_binary("bitwise_xor_", self(), other, flow::bitwise_xor);
}

const Tensor& InPlaceMethods::bitwise_xor_(const Scalar& other, Site site) const {
  return write_number("bitwise_xor_", self(), other, site, flow::bitwise_xor);
}

const Tensor& InPlaceMethods::bitwise_left_shift_(const TensorArg& other) const {
  return write_binary("bitwise_left_shift_", self(), other, flow::bitwise_left_shift);
}

const Tensor& InPlaceMethods::bitwise_left_shift_(const Scalar& other, Site site) const {
  return write_number("bitwise_left_shift_", self(), other, site, flow::bitwise_left_shift);
}

const Tensor& InPlaceMethods::bitwise_right_shift_(const TensorArg& other) const {
  return write_binary("bitwise_right_shift_", self(), other, flow::bitwise_right_shift);
}

const Tensor& InPlaceMethods::bitwise_right_shift_(const Scalar& other, Site site) const {
  return write_number("bitwise_right_shift_", self(), other, site, flow::bitwise_right_shift);
}

}  // namespace flow
