#include "nn/distributions/kl.h"

#include <limits>
#include <numbers>

#include "core/calls/site_scope.h"
#include "core/error.h"
#include "nn/distributions/categorical.h"
#include "nn/distributions/normal.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/special.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/reduce/reduce.h"

namespace flow::distributions {

namespace {

Tensor kl(const Normal& p, const Normal& q) {
  const Tensor variances = square(p.scale() / q.scale());
  const Tensor distance = square((p.loc() - q.loc()) / q.scale());
  return (variances + distance - 1 - log(variances)) * 0.5;
}

// Infinite if p may draw what q does not.
Tensor kl(const Uniform& p, const Uniform& q) {
  const Tensor outside = logical_or(gt(q.low(), p.low()), lt(q.high(), p.high()));
  const Tensor inside = log((q.high() - q.low()) / (p.high() - p.low()));
  return where(outside, std::numeric_limits<double>::infinity(), inside);
}

Tensor kl(const Gumbel& p, const Gumbel& q) {
  const Tensor ratio = p.scale() / q.scale();
  const Tensor q_at = q.loc() / q.scale();
  const Tensor p_at = p.loc() / q.scale();
  const Tensor moment = exp(q_at - p_at + lgamma(ratio + 1));
  return q_at * -1 + p_at - log(ratio) + ratio * std::numbers::egamma + moment -
         (1 + std::numbers::egamma);
}

// What an outcome of probability p, which is the sigmoid of `p_logits`, adds: p log(p / q), where
// -log(sigmoid(x)) is softplus(-x).
Tensor kl_of_outcome(const Tensor& p, const Tensor& p_logits, const Tensor& q,
                     const Tensor& q_logits) {
  const Tensor finite = p * (softplus(-q_logits) - softplus(-p_logits));
  const Tensor term = where(eq(q, 0), std::numeric_limits<double>::infinity(), finite);
  return where(eq(p, 0), 0, term);
}

Tensor kl(const Bernoulli& p, const Bernoulli& q) {
  return kl_of_outcome(p.probs(), p.logits(), q.probs(), q.logits()) +
         kl_of_outcome(1 - p.probs(), -p.logits(), 1 - q.probs(), -q.logits());
}

// Infinite if p may draw a class that q does not.
Tensor kl(const Categorical& p, const Categorical& q) {
  const Tensor probs = p.probs();
  const Tensor terms = probs * (p.logits() - q.logits());
  const Tensor possible = where(eq(q.probs(), 0), std::numeric_limits<double>::infinity(), terms);
  return where(eq(probs, 0), 0, possible).sum(-1);
}

Tensor kl(const Dirichlet& p, const Dirichlet& q) {
  const Tensor &a = p.concentration(), &b = q.concentration();
  const Tensor total = a.sum(-1, {.keepdim = true});
  return lgamma(total.squeeze(-1)) - lgamma(b.sum(-1)) + (lgamma(b) - lgamma(a)).sum(-1) +
         ((a - b) * (digamma(a) - digamma(total))).sum(-1);
}

// Sets `result` if both are of class D.
template <class D>
bool both(const Distribution& p, const Distribution& q, Tensor& result) {
  const auto* first = dynamic_cast<const D*>(&p);
  const auto* second = dynamic_cast<const D*>(&q);
  if (first == nullptr || second == nullptr) return false;
  result = kl(*first, *second);
  return true;
}

template <class... D>
bool any_pair(const Distribution& p, const Distribution& q, Tensor& result) {
  return (both<D>(p, q, result) || ...);
}

}  // namespace

Tensor kl_divergence(const Distribution& p, const Distribution& q, Site site) {
  const SiteScope scope(site);
  Tensor result;
  if (any_pair<Normal, Uniform, Gumbel, Bernoulli, Categorical, Dirichlet>(p, q, result)) {
    return result;
  }
  throw Unsupported(str("[kl_divergence] there is no formula for ", p.name(), " and ", q.name(),
                        "; estimate it: (p.log_prob(x) - q.log_prob(x)).mean() with x = "
                        "p.sample({n})"));
}

}  // namespace flow::distributions
