// Schedules that decay the learning rate or warm it up. Refused options are InvalidArgument.
#pragma once

#include <functional>

#include "nn/optim/lr_scheduler.h"

namespace flow::optim::lr_scheduler {

using LrLambda = std::function<double(int64_t)>;

// lr_lambda, a function of the epoch for all groups, or lr_lambdas, one for each group.
struct LambdaLROptions {
  LrLambda lr_lambda = {};
  std::vector<LrLambda> lr_lambdas = {};
};

// lr = initial lr × lr_lambda(epoch).
class LambdaLR : public GroupScheduler {
 public:
  LambdaLR(Optimizer& optimizer, const LambdaLROptions& options, Site site = Site::here());

 private:
  double next_lr(int64_t group) const override;

  std::vector<LrLambda> lambdas_;
};

// Multiplies the rate by lr_lambda(epoch) in every epoch from 1.
class MultiplicativeLR : public GroupScheduler {
 public:
  MultiplicativeLR(Optimizer& optimizer, const LambdaLROptions& options, Site site = Site::here());

 private:
  double next_lr(int64_t group) const override;

  std::vector<LrLambda> lambdas_;
};

struct StepLROptions {
  int64_t step_size = 1;
  double gamma = 0.1;
};

// Multiplies the rate by gamma every step_size epochs.
class StepLR : public GroupScheduler {
 public:
  StepLR(Optimizer& optimizer, const StepLROptions& options, Site site = Site::here());

 private:
  double next_lr(int64_t group) const override;
  double closed_lr(int64_t group) const override;

  StepLROptions options_;
};

struct MultiStepLROptions {
  // In any order; a milestone that is listed twice counts twice.
  std::vector<int64_t> milestones = {};
  double gamma = 0.1;
};

// Multiplies the rate by gamma at each milestone.
class MultiStepLR : public GroupScheduler {
 public:
  MultiStepLR(Optimizer& optimizer, MultiStepLROptions options, Site site = Site::here());

 private:
  double next_lr(int64_t group) const override;
  double closed_lr(int64_t group) const override;

  MultiStepLROptions options_;
};

struct ConstantLROptions {
  double factor = 1.0 / 3;
  int64_t total_iters = 5;
};

// Multiplies the initial rate by factor until epoch total_iters.
class ConstantLR : public GroupScheduler {
 public:
  explicit ConstantLR(Optimizer& optimizer, const ConstantLROptions& options = {},
                      Site site = Site::here());

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

// Multiplies the initial rate by a factor that changes linearly from start_factor to end_factor in
// total_iters epochs and then stays.
class LinearLR : public GroupScheduler {
 public:
  explicit LinearLR(Optimizer& optimizer, const LinearLROptions& options = {},
                    Site site = Site::here());

 private:
  double next_lr(int64_t group) const override;
  double closed_lr(int64_t group) const override;

  LinearLROptions options_;
};

struct ExponentialLROptions {
  double gamma = 0.1;
};

// Multiplies the rate by gamma every epoch.
class ExponentialLR : public GroupScheduler {
 public:
  ExponentialLR(Optimizer& optimizer, const ExponentialLROptions& options,
                Site site = Site::here());

 private:
  double next_lr(int64_t group) const override;
  double closed_lr(int64_t group) const override;

  ExponentialLROptions options_;
};

struct PolynomialLROptions {
  int64_t total_iters = 5;
  double power = 1;
};

// lr = initial lr × (1 - epoch / total_iters)^power until epoch total_iters, then 0.
class PolynomialLR : public GroupScheduler {
 public:
  explicit PolynomialLR(Optimizer& optimizer, const PolynomialLROptions& options = {},
                        Site site = Site::here());

 private:
  double next_lr(int64_t group) const override;
  double closed_lr(int64_t group) const override;

  PolynomialLROptions options_;
};

struct CosineDecayLROptions {
  int64_t decay_steps = 1;
  double alpha = 0;  // the factor after decay_steps epochs
};

// As in OneFlow: lr = initial lr × ((1 - alpha) (1 + cos(π min(epoch, decay_steps) / decay_steps))
// / 2 + alpha). Unlike CosineAnnealingLR the rate stays at its final value.
class CosineDecayLR : public GroupScheduler {
 public:
  CosineDecayLR(Optimizer& optimizer, const CosineDecayLROptions& options,
                Site site = Site::here());

 private:
  double next_lr(int64_t group) const override;

  CosineDecayLROptions options_;
};

}  // namespace flow::optim::lr_scheduler
