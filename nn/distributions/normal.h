// Distributions of one real number.
#pragma once

#include "nn/distributions/distribution.h"

namespace flow::distributions {

// Mean `loc` and standard deviation `scale` > 0.
class Normal : public Distribution {
 public:
  Normal(const Parameter& loc, const Parameter& scale, const DistributionOptions& options = {},
         Site site = Site::here());

  const Tensor& loc() const { return loc_; }

  const Tensor& scale() const { return scale_; }

  Tensor mean() const override;
  Tensor variance() const override;

 protected:
  Tensor draw_with_gradient(const Shape& sample_shape) const override;
  Tensor compute_log_prob(const Tensor& value) const override;
  Tensor compute_cdf(const Tensor& value) const override;
  Tensor compute_icdf(const Tensor& q) const override;
  Tensor compute_entropy() const override;

 private:
  Tensor loc_, scale_;
};

// Uniform between `low` and `high`, low < high. log_prob is -inf at `high`, which is not drawn.
class Uniform : public Distribution {
 public:
  Uniform(const Parameter& low, const Parameter& high, const DistributionOptions& options = {},
          Site site = Site::here());

  const Tensor& low() const { return low_; }

  const Tensor& high() const { return high_; }

  Tensor mean() const override;
  Tensor variance() const override;

 protected:
  Support support_at(const Tensor& value) const override;
  Tensor draw_with_gradient(const Shape& sample_shape) const override;
  Tensor compute_log_prob(const Tensor& value) const override;
  Tensor compute_cdf(const Tensor& value) const override;
  Tensor compute_icdf(const Tensor& q) const override;
  Tensor compute_entropy() const override;

 private:
  Tensor low_, high_;
};

// The distribution of maxima, with cdf exp(-exp(-(x - loc) / scale)), scale > 0 (Gumbel 1935).
class Gumbel : public Distribution {
 public:
  Gumbel(const Parameter& loc, const Parameter& scale, const DistributionOptions& options = {},
         Site site = Site::here());

  const Tensor& loc() const { return loc_; }

  const Tensor& scale() const { return scale_; }

  Tensor mean() const override;
  Tensor variance() const override;

 protected:
  Tensor draw_with_gradient(const Shape& sample_shape) const override;
  Tensor compute_log_prob(const Tensor& value) const override;
  Tensor compute_cdf(const Tensor& value) const override;
  Tensor compute_icdf(const Tensor& q) const override;
  Tensor compute_entropy() const override;

 private:
  Tensor loc_, scale_;
};

}  // namespace flow::distributions
