// Mixtures of distributions of one class.
#pragma once

#include <concepts>
#include <memory>

#include "nn/distributions/categorical.h"

namespace flow::distributions {

// Draws component i with the probability that `mixture` gives to class i, and then from it. The
// last dim of the component's batch_shape is that of the components.
//
//   MixtureSameFamily(Categorical({.probs = ones({3})}), Normal(means, deviations))
class MixtureSameFamily : public Distribution {
 public:
  // D: the class of the components.
  template <class D>

  requires std::derived_from<D, Distribution> MixtureSameFamily(const Categorical& mixture,
                                                                const D& component,
                                                                Site site = Site::here())
      : MixtureSameFamily(mixture, std::make_shared<const D>(component), site) {}

  const Categorical& mixture_distribution() const { return mixture_; }

  const Distribution& component_distribution() const { return *component_; }

  Tensor mean() const override;
  Tensor variance() const override;

 protected:
  Tensor draw(const Shape& sample_shape) const override;
  Tensor compute_log_prob(const Tensor& value) const override;
  Tensor compute_cdf(const Tensor& value) const override;

 private:
  MixtureSameFamily(const Categorical& mixture, std::shared_ptr<const Distribution> component,
                    Site site);

  // The values for all components: with a dim of size 1 before the event dims.
  Tensor for_components(const Tensor& value) const;
  // Adds a dim of size 1 at the end for each event dim.
  Tensor with_event_dims(Tensor x) const;
  // Probabilities of the components, with such dims.
  Tensor weights() const;
  // The position of the components' dim in a result with batch and event dims.
  int64_t component_dim() const;

  Categorical mixture_;
  std::shared_ptr<const Distribution> component_;
};

}  // namespace flow::distributions
