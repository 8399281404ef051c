// Losses for real-valued targets, as modules. Each one calls the function of ops/loss/loss.h or
// ops/loss/likelihood_loss.h whose formula it names, with the options given to the constructor.
// `input` is floating; the shapes of `input` and `target` broadcast to one shape. A target on
// another placement than the input is moved to the input's placement first.
#pragma once

#include "nn/module.h"
#include "ops/loss/likelihood_loss.h"
#include "ops/loss/loss.h"

namespace flow::nn {

// |input - target|, averaged unless options.reduction says otherwise.
class L1Loss : public Module<L1Loss> {
 public:
  explicit L1Loss(LossOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& input, const Tensor& target);

 private:
  LossOptions options_;
};

// (input - target)², averaged unless options.reduction says otherwise.
class MSELoss : public Module<MSELoss> {
 public:
  explicit MSELoss(LossOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& input, const Tensor& target);

 private:
  LossOptions options_;
};

// Quadratic where |input - target| < beta, linear beyond it; see smooth_l1_loss.
class SmoothL1Loss : public Module<SmoothL1Loss> {
 public:
  explicit SmoothL1Loss(SmoothL1Options options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& input, const Tensor& target);

 private:
  SmoothL1Options options_;
};

// Quadratic where |input - target| <= delta, linear beyond it; see huber_loss.
class HuberLoss : public Module<HuberLoss> {
 public:
  explicit HuberLoss(HuberOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& input, const Tensor& target);

 private:
  HuberOptions options_;
};

// The Kullback-Leibler divergence of `input` (log-probabilities) from `target` (probabilities, or
// log-probabilities with options.log_target); see kl_div.
class KLDivLoss : public Module<KLDivLoss> {
 public:
  explicit KLDivLoss(KlDivOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& input, const Tensor& target);

 private:
  KlDivOptions options_;
};

// Negative log-likelihood of counts `target` under Poisson distributions. `input` holds the
// logarithms of the rates, or the rates when options.log_input is false; see poisson_nll_loss.
class PoissonNLLLoss : public Module<PoissonNLLLoss> {
 public:
  explicit PoissonNLLLoss(PoissonNllOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& input, const Tensor& target);

 private:
  PoissonNllOptions options_;
};

// Negative log-likelihood of `target` under normal distributions with means `input` and variances
// `var`. var: the shape of `input`, or that shape with the last dim of size 1 or left out.
class GaussianNLLLoss : public Module<GaussianNLLLoss> {
 public:
  explicit GaussianNLLLoss(GaussianNllOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& input, const Tensor& target, const Tensor& var);

 private:
  GaussianNllOptions options_;
};

}  // namespace flow::nn
