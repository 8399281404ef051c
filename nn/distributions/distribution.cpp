#include "nn/distributions/distribution.h"

#include <algorithm>

#include "core/calls/site_scope.h"
#include "core/context.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "nn/distributions/support.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/unary.h"

namespace flow::distributions {

namespace {

// Throws InvalidArgument unless the last dims of `value` are those of one draw.
void check_event(const char* name, const Tensor& value, const Shape& event_shape) {
  const bool fits =
      value.dim() >= event_shape.size() &&
      std::equal(event_shape.begin(), event_shape.end(), value.shape().end() - event_shape.size());
  if (fits) return;
  throw InvalidArgument(str("[", name, "] the last dims of a value must be those of one draw, ",
                            event_shape, "; received ", value.meta(), "; reshape it"));
}

}  // namespace

Distribution::Distribution(const char* name, Shape batch_shape, Shape event_shape,
                           const DistributionOptions& options)
    : name_(name),
      checks_values_(options.validate_args),
      batch_shape_(std::move(batch_shape)),
      event_shape_(std::move(event_shape)) {}

Tensor Distribution::sample(const Shape& sample_shape, Site site) const {
  const SiteScope scope(site);
  const NoGradGuard no_grad;
  return draw(sample_shape);
}

Tensor Distribution::rsample(const Shape& sample_shape, Site site) const {
  const SiteScope scope(site);
  return draw_with_gradient(sample_shape);
}

Tensor Distribution::log_prob(const Tensor& value, Site site) const {
  const SiteScope scope(site);
  check_event(name_, value, event_shape_);
  if (checks_values_ && thread_state().trace == nullptr) {
    const NoGradGuard no_grad;
    const Support support = support_at(value);
    require(name_, str("log_prob() takes ", support.name).c_str(), support.contains, "values");
  }
  return compute_log_prob(value);
}

Tensor Distribution::cdf(const Tensor& value, Site site) const {
  const SiteScope scope(site);
  return compute_cdf(value);
}

Tensor Distribution::icdf(const Tensor& q, Site site) const {
  const SiteScope scope(site);
  return compute_icdf(q);
}

Tensor Distribution::entropy(Site site) const {
  const SiteScope scope(site);
  return compute_entropy();
}

Distribution::Support Distribution::support_at(const Tensor& value) const {
  return {"real numbers", eq(value, value)};
}

Tensor Distribution::draw(const Shape& sample_shape) const {
  return draw_with_gradient(sample_shape);
}

Tensor Distribution::draw_with_gradient(const Shape& /*sample_shape*/) const {
  throw Unsupported(str("[", name_,
                        "] draws have no gradient with respect to the parameters; use "
                        "sample(), and log_prob() in the loss"));
}

Tensor Distribution::compute_cdf(const Tensor& /*value*/) const {
  lacks("cdf");
}

Tensor Distribution::compute_icdf(const Tensor& /*q*/) const {
  lacks("icdf");
}

Tensor Distribution::compute_entropy() const {
  lacks("entropy");
}

Tensor Distribution::stddev() const {
  return sqrt(variance());
}

Shape Distribution::extended(const Shape& sample_shape) const {
  Shape shape = sample_shape;
  for (const Shape* part : {&batch_shape_, &event_shape_}) {
    for (const int64_t size : *part)
      shape.push_back(size);
  }
  return shape;
}

void Distribution::lacks(const char* method) const {
  throw Unsupported(str("[", name_, "] has no ", method,
                        "(); it has sample, log_prob, mean and "
                        "variance"));
}

}  // namespace flow::distributions
