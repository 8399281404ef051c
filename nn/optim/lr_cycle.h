// Schedules whose learning rate rises and falls.
#pragma once

#include <functional>

#include "nn/optim/lr_scheduler.h"

namespace flow::optim::lr_scheduler {

struct CosineAnnealingLROptions {
  int64_t T_max = 1;
  double eta_min = 0;
};

// lr = eta_min + (initial lr - eta_min) (1 + cos(π epoch / T_max)) / 2 (Loshchilov and Hutter
// 2017). The rate rises again after epoch T_max. T_max < 1 is InvalidArgument.
class CosineAnnealingLR : public GroupScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, const CosineAnnealingLROptions& options,
                    Site site = Site::here());

 private:
  double next_lr(int64_t group) const override;
  double closed_lr(int64_t group) const override;

  CosineAnnealingLROptions options_;
};

struct CosineAnnealingWarmRestartsOptions {
  int64_t T_0 = 1;
  int64_t T_mult = 1;
  double eta_min = 0;
};

// The cosine of CosineAnnealingLR, restarted after T_0 epochs; each period is T_mult times as long
// as the one before. T_0 < 1 or T_mult < 1 is InvalidArgument.
class CosineAnnealingWarmRestarts : public GroupScheduler {
 public:
  CosineAnnealingWarmRestarts(Optimizer& optimizer,
                              const CosineAnnealingWarmRestartsOptions& options,
                              Site site = Site::here());

 private:
  double next_lr(int64_t group) const override;
  void advance() override;

  std::vector<Number> numbers() override;

  CosineAnnealingWarmRestartsOptions options_;
  double current_ = -1, length_;  // epochs since the last restart; length of the current period
};

struct CyclicLROptions {
  PerGroup base_lr = {};
  PerGroup max_lr = {};
  int64_t step_size_up = 2000;
  std::optional<int64_t> step_size_down = {};  // unset: equal to step_size_up
  std::string mode = "triangular";             // or "triangular2", "exp_range"
  double gamma = 1;
  std::function<double(double)> scale_fn = {};  // replaces mode
  // Argument of scale_fn: the cycle, or with "iterations" the epoch.
  std::string scale_mode = "cycle";
  bool cycle_momentum = true;
  PerGroup base_momentum = 0.8;
  PerGroup max_momentum = 0.9;
};

// The rate rises and falls linearly between base_lr and max_lr (Smith 2017). The amplitude is
// scaled by 1 ("triangular"), 2^(1 - cycle) ("triangular2") or gamma^epoch ("exp_range"). With
// cycle_momentum the momentum, or the first beta, falls while the rate rises. Throws
// InvalidArgument for unknown modes, step sizes below 1 and lists of another length.
class CyclicLR : public GroupScheduler {
 public:
  CyclicLR(Optimizer& optimizer, CyclicLROptions options, Site site = Site::here());

 private:
  double next_lr(int64_t group) const override;
  std::optional<double> next_momentum(int64_t group) const override;
  // The scaled position between base_lr (0) and max_lr (1).
  double height() const;

  CyclicLROptions options_;
};

struct OneCycleLROptions {
  PerGroup max_lr = {};
  int64_t total_steps = 0;  // 0: epochs × steps_per_epoch
  int64_t epochs = 0;
  int64_t steps_per_epoch = 0;
  double pct_start = 0.3;
  std::string anneal_strategy = "cos";  // or "linear"
  bool cycle_momentum = true;
  PerGroup base_momentum = 0.85;
  PerGroup max_momentum = 0.95;
  double div_factor = 25;
  double final_div_factor = 1e4;
  bool three_phase = false;
};

// The 1cycle policy (Smith and Topin 2019): the rate rises from max_lr / div_factor to max_lr
// within pct_start of the steps, then falls to max_lr / div_factor / final_div_factor. With
// three_phase it first falls to max_lr / div_factor in as many steps as it rose. With
// cycle_momentum the momentum, or the first beta, moves in the opposite direction. Throws
// InvalidArgument for refused options, and in step() beyond total_steps.
class OneCycleLR : public GroupScheduler {
 public:
  OneCycleLR(Optimizer& optimizer, OneCycleLROptions options, Site site = Site::here());

 private:
  double next_lr(int64_t group) const override;
  std::optional<double> next_momentum(int64_t group) const override;

  enum class Level { kLow, kHigh, kEnd };

  struct Stretch {
    double end_step;
    Level from, to;
  };

  // The phase that last_epoch() belongs to, and the share of the phase that is done.
  std::pair<Stretch, double> place() const;
  double anneal(double from, double to, double done) const;

  OneCycleLROptions options_;
  std::vector<Stretch> stretches_;
};

}  // namespace flow::optim::lr_scheduler
