// Distributions of classes, and of their probabilities.
#pragma once

#include "nn/distributions/distribution.h"

namespace flow::distributions {

// Exactly one of the two. logits are log odds for Bernoulli, and logarithms of probabilities up to
// a constant for Categorical.
struct ProbsOrLogits {
  Tensor probs = {};
  Tensor logits = {};
};

// 1 with probability p, else 0.  Bernoulli({.logits = x})
class Bernoulli : public Distribution {
 public:
  explicit Bernoulli(const ProbsOrLogits& parameters, const DistributionOptions& options = {},
                     Site site = Site::here());

  Tensor probs() const;
  Tensor logits() const;
  Tensor mean() const override;
  Tensor variance() const override;

 protected:
  Support support_at(const Tensor& value) const override;
  Tensor draw(const Shape& sample_shape) const override;
  Tensor compute_log_prob(const Tensor& value) const override;
  Tensor compute_entropy() const override;

 private:
  Tensor probs_, logits_;  // one of them is defined
};

// Class i, an int64, with a probability proportional to probs[..., i]. The last dim of the
// parameters is that of the classes and does not belong to batch_shape.  Categorical({.probs = p})
class Categorical : public Distribution {
 public:
  explicit Categorical(const ProbsOrLogits& parameters, const DistributionOptions& options = {},
                       Site site = Site::here());

  // Normalised: they sum to 1.
  Tensor probs() const;
  // Normalised: the logarithms of probs().
  Tensor logits() const;

  int64_t num_classes() const { return parameter().size(-1); }

  // NaN, as classes have no mean.
  Tensor mean() const override;
  Tensor variance() const override;

 protected:
  Support support_at(const Tensor& value) const override;
  Tensor draw(const Shape& sample_shape) const override;
  // value: classes as integers.
  Tensor compute_log_prob(const Tensor& value) const override;
  Tensor compute_entropy() const override;

 private:
  const Tensor& parameter() const { return probs_.defined() ? probs_ : logits_; }

  Tensor probs_, logits_;
};

// Probabilities of K classes, with density proportional to the product of x[i]^(concentration[i] -
// 1). concentration: (..., K) > 0; event_shape is (K). There is no rsample.
class Dirichlet : public Distribution {
 public:
  explicit Dirichlet(const Tensor& concentration, const DistributionOptions& options = {},
                     Site site = Site::here());

  const Tensor& concentration() const { return concentration_; }

  Tensor mean() const override;
  Tensor variance() const override;

 protected:
  Support support_at(const Tensor& value) const override;
  Tensor draw(const Shape& sample_shape) const override;
  Tensor compute_log_prob(const Tensor& value) const override;
  Tensor compute_entropy() const override;

 private:
  Tensor concentration_;
};

}  // namespace flow::distributions
