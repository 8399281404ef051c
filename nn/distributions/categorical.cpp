#include "nn/distributions/categorical.h"

#include <cmath>
#include <limits>

#include "core/calls/site_scope.h"
#include "core/error.h"
#include "nn/distributions/support.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/special.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/index/gather.h"
#include "ops/norm/softmax.h"
#include "ops/random/multinomial.h"
#include "ops/random/random.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace flow::distributions {

namespace {

// Returns the one that is given.
const Tensor& only_one(const char* name, const ProbsOrLogits& parameters, Site site) {
  if (parameters.probs.defined() == parameters.logits.defined()) {
    throw InvalidArgument(str("[", name, "] takes either probs or logits; received ",
                              parameters.probs.defined() ? "both" : "neither", "; give one"),
                          site);
  }
  return parameters.probs.defined() ? parameters.probs : parameters.logits;
}

// The shape without its last dim.
Shape without_classes(const char* name, const Tensor& x, Site site) {
  const SiteScope scope(site);
  if (x.dim() == 0 || x.size(-1) == 0) {
    throw InvalidArgument(str("[", name,
                              "] the last dim of the parameters is that of the classes; ",
                              "received the shape ", x.shape(), "; give at least one class"));
  }
  Shape shape = x.shape();
  shape.erase(shape.size() - 1);
  return shape;
}

// Dims of one draw of a Dirichlet distribution.
Shape classes_of(const Tensor& x) {
  return {x.size(-1)};
}

// Draws of the gamma distribution with shape parameter `a` and scale 1 (Marsaglia and Tsang 2000).
// Each proposal is accepted with a probability above 0.95, so that 8 of them are rejected with one
// below 4e-11; the last is then taken.
Tensor log_gamma_draws(const Tensor& a) {
  constexpr int kProposals = 8;
  const Tensor is_small = lt(a, 1);
  const Tensor raised = where(is_small, a + 1, a);  // of which a power of a uniform draw gives a
  const Tensor d = raised - 1.0 / 3;
  const Tensor c = rsqrt(d * 9);
  Tensor result, is_accepted;
  for (int i = 0; i < kProposals; ++i) {
    const Tensor x = normal_draws(a.shape(), a);
    const Tensor cube_root = clamp(x * c + 1, {.min = machine_epsilon(a.dtype())});
    const Tensor v = cube_root * square(cube_root);
    const Tensor proposal = d * v;
    const Tensor log_u = log(open_uniform_draws(a.shape(), a));
    const Tensor fits = lt(log_u, square(x) * 0.5 + d - proposal + d * log(v));
    result = i == 0 ? proposal : where(is_accepted, result, proposal);
    is_accepted = i == 0 ? fits : logical_or(is_accepted, fits);
  }
  const Tensor log_u = log(open_uniform_draws(a.shape(), a));
  return log(result) + where(is_small, log_u / a, 0);
}

}  // namespace

Bernoulli::Bernoulli(const ProbsOrLogits& parameters, const DistributionOptions& options, Site site)
    : Distribution("Bernoulli", only_one("Bernoulli", parameters, site).shape(), {}, options),
      probs_(parameters.probs),
      logits_(parameters.logits) {
  const SiteScope scope(site);
  if (options.validate_args && probs_.defined()) {
    require("Bernoulli", "probs must be between 0 and 1",
            logical_and(ge(probs_, 0), le(probs_, 1)));
  } else if (options.validate_args) {
    require("Bernoulli", "logits must not be NaN", logical_not(isnan(logits_)));
  }
}

Tensor Bernoulli::probs() const {
  return probs_.defined() ? probs_ : sigmoid(logits_);
}

Tensor Bernoulli::logits() const {
  if (logits_.defined()) return logits_;
  const Tensor p = clamp_probs(probs_);
  return log(p) - log1p(-p);
}

Tensor Bernoulli::draw(const Shape& sample_shape) const {
  return bernoulli(broadcast_to(probs(), extended(sample_shape)));
}

Distribution::Support Bernoulli::support_at(const Tensor& value) const {
  return {"0 and 1", logical_or(eq(value, 0), eq(value, 1))};
}

// softplus(-x) and softplus(x) are -log p and -log(1 - p).
Tensor Bernoulli::compute_log_prob(const Tensor& value) const {
  const Tensor x = logits();
  return -(value * softplus(-x) + (1 - value) * softplus(x));
}

Tensor Bernoulli::compute_entropy() const {
  const Tensor x = logits();
  const Tensor other = probs_.defined() ? 1 - probs_ : sigmoid(-x);
  return probs() * softplus(-x) + other * softplus(x);
}

Tensor Bernoulli::mean() const {
  return probs();
}

Tensor Bernoulli::variance() const {
  const Tensor p = probs();
  return p * (1 - p);
}

Categorical::Categorical(const ProbsOrLogits& parameters, const DistributionOptions& options,
                         Site site)
    : Distribution("Categorical",
                   without_classes("Categorical", only_one("Categorical", parameters, site), site),
                   {}, options),
      probs_(parameters.probs),
      logits_(parameters.logits) {
  const SiteScope scope(site);
  if (options.validate_args && probs_.defined()) {
    require("Categorical", "probs must not be negative, and one of each row must be positive",
            logical_and(ge(probs_, 0), gt(probs_.sum(-1, {.keepdim = true}), 0)));
  } else if (options.validate_args) {
    require("Categorical", "logits must not be NaN", logical_not(isnan(logits_)));
  }
}

Tensor Categorical::probs() const {
  if (!probs_.defined()) return softmax(logits_, -1);
  return probs_ / probs_.sum(-1, {.keepdim = true});
}

Tensor Categorical::logits() const {
  return logits_.defined() ? log_softmax(logits_, -1) : log(clamp_probs(probs()));
}

Tensor Categorical::draw(const Shape& sample_shape) const {
  const Tensor rows = probs().reshape({-1, num_classes()});
  const Tensor draws = multinomial(rows, sample_shape.numel(), {.replacement = true});
  return draws.t().reshape(extended(sample_shape));
}

Distribution::Support Categorical::support_at(const Tensor& value) const {
  const Tensor is_class = logical_and(ge(value, 0), lt(value, num_classes()));
  return {"classes from 0 on", logical_and(is_class, eq(value, cast(value, int64)))};
}

Tensor Categorical::compute_log_prob(const Tensor& value) const {
  const Tensor table = logits();
  Shape shape = broadcast_shapes(value.shape(), batch_shape(), name());
  const Tensor classes = broadcast_to(cast(value, int64), shape).unsqueeze(-1);
  shape.push_back(num_classes());
  return gather(broadcast_to(table, shape), -1, classes).squeeze(-1);
}

Tensor Categorical::compute_entropy() const {
  // A class of probability 0 adds nothing, and has no gradient.
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Tensor x = logits();
  return -(probs() * where(eq(x, -kInfinity), 0, x)).sum(-1);
}

Tensor Categorical::mean() const {
  return full_like(parameter().select(-1, 0), std::numeric_limits<double>::quiet_NaN());
}

Tensor Categorical::variance() const {
  return mean();
}

Dirichlet::Dirichlet(const Tensor& concentration, const DistributionOptions& options, Site site)
    : Distribution("Dirichlet", without_classes("Dirichlet", concentration, site),
                   classes_of(concentration), options),
      concentration_(concentration) {
  const SiteScope scope(site);
  if (options.validate_args) {
    require("Dirichlet", "concentration must be positive", gt(concentration_, 0));
  }
}

Tensor Dirichlet::draw(const Shape& sample_shape) const {
  return softmax(log_gamma_draws(broadcast_to(concentration_, extended(sample_shape))), -1);
}

Distribution::Support Dirichlet::support_at(const Tensor& value) const {
  const double rounding =
      1e-6 + static_cast<double>(concentration_.size(-1)) * machine_epsilon(value.dtype());
  const Tensor is_whole = le(abs(value.sum(-1) - 1), rounding);
  return {"probabilities whose sum is 1", logical_and(all(ge(value, 0), -1), is_whole)};
}

Tensor Dirichlet::compute_log_prob(const Tensor& value) const {
  return xlogy(concentration_ - 1, value).sum(-1) + lgamma(concentration_.sum(-1)) -
         lgamma(concentration_).sum(-1);
}

Tensor Dirichlet::compute_entropy() const {
  const Tensor total = concentration_.sum(-1);
  const auto k = static_cast<double>(concentration_.size(-1));
  return lgamma(concentration_).sum(-1) - lgamma(total) - (k - total) * digamma(total) -
         ((concentration_ - 1) * digamma(concentration_)).sum(-1);
}

Tensor Dirichlet::mean() const {
  return concentration_ / concentration_.sum(-1, {.keepdim = true});
}

Tensor Dirichlet::variance() const {
  const Tensor total = concentration_.sum(-1, {.keepdim = true});
  return concentration_ * (total - concentration_) / (square(total) * (total + 1));
}

}  // namespace flow::distributions
