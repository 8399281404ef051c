#include "nn/distributions/normal.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <tuple>

#include "core/calls/site_scope.h"
#include "nn/distributions/support.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/special.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/shape/view.h"

namespace flow::distributions {

namespace {

constexpr double kLogSqrtTwoPi = 0.91893853320467274178;

Shape common_shape(const char* name, const Parameter& a, const Parameter& b, Site site) {
  const SiteScope scope(site);
  return broadcast_shapes(a.shape(), b.shape(), name);
}

}  // namespace

Normal::Normal(const Parameter& loc, const Parameter& scale, const DistributionOptions& options,
               Site site)
    : Distribution("Normal", common_shape("Normal", loc, scale, site), {}, options) {
  const SiteScope scope(site);
  std::tie(loc_, scale_) = broadcast_parameters("Normal", loc, scale);
  if (options.validate_args) {
    require("Normal", "scale must be positive, and loc not NaN",
            logical_and(gt(scale_, 0), logical_not(isnan(loc_))));
  }
}

Tensor Normal::draw_with_gradient(const Shape& sample_shape) const {
  return loc_ + normal_draws(extended(sample_shape), loc_) * scale_;
}

Tensor Normal::compute_log_prob(const Tensor& value) const {
  const Tensor z = (value - loc_) / scale_;
  return square(z) * -0.5 - log(scale_) - kLogSqrtTwoPi;
}

Tensor Normal::compute_cdf(const Tensor& value) const {
  return (erf((value - loc_) / (scale_ * std::numbers::sqrt2)) + 1) * 0.5;
}

Tensor Normal::compute_icdf(const Tensor& q) const {
  return loc_ + scale_ * erfinv(q * 2 - 1) * std::numbers::sqrt2;
}

Tensor Normal::compute_entropy() const {
  return log(scale_) + (0.5 + kLogSqrtTwoPi);
}

Tensor Normal::mean() const {
  return loc_;
}

Tensor Normal::variance() const {
  return square(scale_);
}

Uniform::Uniform(const Parameter& low, const Parameter& high, const DistributionOptions& options,
                 Site site)
    : Distribution("Uniform", common_shape("Uniform", low, high, site), {}, options) {
  const SiteScope scope(site);
  std::tie(low_, high_) = broadcast_parameters("Uniform", low, high);
  if (options.validate_args) require("Uniform", "low must be less than high", lt(low_, high_));
}

Tensor Uniform::draw_with_gradient(const Shape& sample_shape) const {
  return low_ + uniform_draws(extended(sample_shape), low_) * (high_ - low_);
}

Distribution::Support Uniform::support_at(const Tensor& value) const {
  return {"numbers from low to high", logical_and(ge(value, low_), le(value, high_))};
}

Tensor Uniform::compute_log_prob(const Tensor& value) const {
  const Tensor inside = logical_and(ge(value, low_), lt(value, high_));
  return where(inside, -log(high_ - low_), -std::numeric_limits<double>::infinity());
}

Tensor Uniform::compute_cdf(const Tensor& value) const {
  return clamp((value - low_) / (high_ - low_), {.min = 0, .max = 1});
}

Tensor Uniform::compute_icdf(const Tensor& q) const {
  return low_ + q * (high_ - low_);
}

Tensor Uniform::compute_entropy() const {
  return log(high_ - low_);
}

Tensor Uniform::mean() const {
  return (low_ + high_) * 0.5;
}

Tensor Uniform::variance() const {
  return square(high_ - low_) / 12;
}

Gumbel::Gumbel(const Parameter& loc, const Parameter& scale, const DistributionOptions& options,
               Site site)
    : Distribution("Gumbel", common_shape("Gumbel", loc, scale, site), {}, options) {
  const SiteScope scope(site);
  std::tie(loc_, scale_) = broadcast_parameters("Gumbel", loc, scale);
  if (options.validate_args) {
    require("Gumbel", "scale must be positive, and loc not NaN",
            logical_and(gt(scale_, 0), logical_not(isnan(loc_))));
  }
}

Tensor Gumbel::draw_with_gradient(const Shape& sample_shape) const {
  return compute_icdf(open_uniform_draws(extended(sample_shape), loc_));
}

Tensor Gumbel::compute_log_prob(const Tensor& value) const {
  const Tensor z = (value - loc_) / scale_;
  return -(z + exp(-z)) - log(scale_);
}

Tensor Gumbel::compute_cdf(const Tensor& value) const {
  return exp(-exp((loc_ - value) / scale_));
}

Tensor Gumbel::compute_icdf(const Tensor& q) const {
  return loc_ - scale_ * log(-log(q));
}

Tensor Gumbel::compute_entropy() const {
  return log(scale_) + (1 + std::numbers::egamma);
}

Tensor Gumbel::mean() const {
  return loc_ + scale_ * std::numbers::egamma;
}

Tensor Gumbel::variance() const {
  return square(scale_) * (std::numbers::pi * std::numbers::pi / 6);
}

}  // namespace flow::distributions
