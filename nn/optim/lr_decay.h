// Schedules that decay the rate, or warm it up, once.
#pragma once

#include <functional>

#include "nn/optim/lr_scheduler.h"

namespace flow::optim::lr_scheduler {

using LrLambda = std::function<double(int64_t)>;

// One function of the epoch for all groups; or `lr_lambdas`, one for each.
struct LambdaLROptions {
  LrLambda lr_lambda = {};
  std::vector<LrLambda> lr_lambdas = {};
};

// lr = initial lr × lr_lambda(epoch).
class LambdaLR : public GroupScheduler {
 public:
  LambdaLR(Optimizer& optimizer, const LambdaLROptions& options);

 private:
  double next_lr(int64_t group) const override;

  std::vector<LrLambda> lambdas_;
};

// lr = lr × lr_lambda(epoch), from epoch 1 on.
class MultiplicativeLR : public GroupScheduler {
 public:
  MultiplicativeLR(Optimizer& optimizer, const LambdaLROptions& options);

 private:
  double next_lr(int64_t group) const override;

  std::vector<LrLambda> lambdas_;
};

struct StepLROptions {
  int64_t step_size = 1;
  double gamma = 0.1;
};

// × gamma every step_size epochs.
class StepLR : public GroupScheduler {
 public:
  StepLR(Optimizer& optimizer, const StepLROptions& options);

 private:
  double next_lr(int64_t group) const override;
  double closed_lr(int64_t group) const override;

  StepLROptions options_;
};

struct MultiStepLROptions {
  std::vector<int64_t> milestones = {};  // in any order; twice the same counts twice
  double gamma = 0.1;
};

// × gamma at each milestone.
class MultiStepLR : public GroupScheduler {
 public:
  MultiStepLR(Optimizer& optimizer, MultiStepLROptions options);

 private:
  double next_lr(int64_t group) const override;
  double closed_lr(int64_t group) const override;

  MultiStepLROptions options_;
};

struct ConstantLROptions {
  double factor = 1.0 / 3;
  int64_t total_iters = 5;
};

// × factor until epoch total_iters.
class ConstantLR : public GroupScheduler {
 public:
  explicit ConstantLR(Optimizer& optimizer, const ConstantLROptions& options = {});

 private:
  double next_lr(int64_t group) const override;
  double closed_lr(int64_t group) const override;

  ConstantLROptions options_;
};

struct LinearLROptions {
  double start_factor = 1.0 / 3;
  double end_factor = 1;
  int64_t total_iters = 5;
};

// × a factor that goes from start_factor to end_factor in total_iters epochs.
class LinearLR : public GroupScheduler {
 public:
  explicit LinearLR(Optimizer& optimizer, const LinearLROptions& options = {});

 private:
  double next_lr(int64_t group) const override;
  double closed_lr(int64_t group) const override;

  LinearLROptions options_;
};

struct ExponentialLROptions {
  double gamma = 0.1;
};

// × gamma every epoch.
class ExponentialLR : public GroupScheduler {
 public:
  ExponentialLR(Optimizer& optimizer, const ExponentialLROptions& options);

 private:
  double next_lr(int64_t group) const override;
  double closed_lr(int64_t group) const override;

  ExponentialLROptions options_;
};

struct PolynomialLROptions {
  int64_t total_iters = 5;
  double power = 1;
};

// × (1 - epoch / total_iters)^power, then 0.
class PolynomialLR : public GroupScheduler {
 public:
  explicit PolynomialLR(Optimizer& optimizer, const PolynomialLROptions& options = {});

 private:
  double next_lr(int64_t group) const override;
  double closed_lr(int64_t group) const override;

  PolynomialLROptions options_;
};

struct CosineDecayLROptions {
  int64_t decay_steps = 1;
  double alpha = 0;  // the factor at the end
};

// OneFlow's: × (1 - alpha) (1 + cos(π min(epoch, decay_steps) / decay_steps)) / 2 + alpha. Unlike
// CosineAnnealingLR it stays at its end.
class CosineDecayLR : public GroupScheduler {
 public:
  CosineDecayLR(Optimizer& optimizer, const CosineDecayLROptions& options);

 private:
  double next_lr(int64_t group) const override;

  CosineDecayLROptions options_;
};

}  // namespace flow::optim::lr_scheduler
