// The Kullback-Leibler divergence of two distributions.
#pragma once

#include "nn/distributions/distribution.h"

namespace flow::distributions {

// KL(p || q), the expectation under p of log p - log q, in nats, of the shape of the batches. Both
// must be of the same class, one of Normal, Uniform, Gumbel, Bernoulli, Categorical and Dirichlet;
// throws Unsupported otherwise.
Tensor kl_divergence(const Distribution& p, const Distribution& q, Site site = Site::here());

}  // namespace flow::distributions
