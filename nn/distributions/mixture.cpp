#include "nn/distributions/mixture.h"

#include "core/calls/site_scope.h"
#include "core/error.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/unary.h"
#include "ops/index/gather.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/statistics.h"
#include "ops/shape/view.h"

namespace flow::distributions {

namespace {

// The component's batch_shape without the dim of the components.
Shape mixed_shape(const Categorical& mixture, const Distribution& component, Site site) {
  const SiteScope scope(site);
  const Shape& shape = component.batch_shape();
  if (shape.empty() || shape.back() != mixture.num_classes()) {
    throw InvalidArgument(
        str("[MixtureSameFamily] the last dim of the component's batch_shape must "
            "have one place for each class of the mixture; received ",
            shape, " and ", mixture.num_classes(), " classes"));
  }
  Shape mixed = shape;
  mixed.erase(mixed.size() - 1);
  return mixed;
}

}  // namespace

MixtureSameFamily::MixtureSameFamily(const Categorical& mixture,
                                     std::shared_ptr<const Distribution> component, Site site)
    : Distribution("MixtureSameFamily", mixed_shape(mixture, *component, site),
                   component->event_shape(), {.validate_args = false}),
      mixture_(mixture),
      component_(std::move(component)) {}

int64_t MixtureSameFamily::component_dim() const {
  return -1 - event_shape().size();
}

Tensor MixtureSameFamily::for_components(const Tensor& value) const {
  return value.unsqueeze(component_dim());
}

Tensor MixtureSameFamily::with_event_dims(Tensor x) const {
  for (int64_t i = 0; i < event_shape().size(); ++i)
    x = x.unsqueeze(-1);
  return x;
}

Tensor MixtureSameFamily::weights() const {
  return with_event_dims(mixture_.probs());
}

Tensor MixtureSameFamily::draw(const Shape& sample_shape) const {
  const Tensor all = component_->sample(sample_shape);
  // The mixture may have fewer batch dims than the components.
  const Categorical mixture({.probs = broadcast_to(mixture_.probs(), component_->batch_shape())},
                            {.validate_args = false});
  const Tensor chosen = with_event_dims(mixture.sample(sample_shape).unsqueeze(-1));
  Shape shape = all.shape();
  const int64_t dim = all.dim() + component_dim();
  shape[dim] = 1;
  return gather(all, dim, broadcast_to(chosen, shape)).squeeze(dim);
}

Tensor MixtureSameFamily::compute_log_prob(const Tensor& value) const {
  return logsumexp(component_->log_prob(for_components(value)) + mixture_.logits(), {-1});
}

Tensor MixtureSameFamily::compute_cdf(const Tensor& value) const {
  return (component_->cdf(for_components(value)) * mixture_.probs()).sum(-1);
}

Tensor MixtureSameFamily::mean() const {
  return (component_->mean() * weights()).sum(component_dim());
}

// The mean of the variances and the variance of the means.
Tensor MixtureSameFamily::variance() const {
  const Tensor distance = component_->mean() - mean().unsqueeze(component_dim());
  return ((component_->variance() + square(distance)) * weights()).sum(component_dim());
}

}  // namespace flow::distributions
