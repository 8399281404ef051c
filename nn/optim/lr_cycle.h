// Schedules that rise and fall.
#pragma once

#include <functional>

#include "nn/optim/lr_scheduler.h"

namespace flow::optim::lr_scheduler {

struct CosineAnnealingLROptions {
  int64_t T_max = 1;
  double eta_min = 0;
};

// eta_min + (initial lr - eta_min) (1 + cos(π epoch / T_max)) / 2 (Loshchilov and Hutter 2017); it
// rises again after T_max.
class CosineAnnealingLR : public GroupScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, const CosineAnnealingLROptions& options);

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

// The cosine starts anew after T_0 epochs, each time T_mult times as long.
class CosineAnnealingWarmRestarts : public GroupScheduler {
 public:
  CosineAnnealingWarmRestarts(Optimizer& optimizer,
                              const CosineAnnealingWarmRestartsOptions& options);

 private:
  double next_lr(int64_t group) const override;
  void advance() override;

  std::vector<Number> numbers() override { return {{"T_cur", &current_}, {"T_i", &length_}}; }

  CosineAnnealingWarmRestartsOptions options_;
  double current_ = -1, length_;  // epochs since the restart, and to the next
};

// A list holds one value for all groups or one for each.
struct CyclicLROptions {
  std::vector<double> base_lr = {};
  std::vector<double> max_lr = {};
  int64_t step_size_up = 2000;
  std::optional<int64_t> step_size_down = {};  // unset: as step_size_up
  std::string mode = "triangular";             // "triangular2", "exp_range"
  double gamma = 1;
  std::function<double(double)> scale_fn = {};  // in place of mode
  std::string scale_mode = "cycle";             // scale_fn's argument; or "iterations"
  bool cycle_momentum = true;
  std::vector<double> base_momentum = {0.8};
  std::vector<double> max_momentum = {0.9};
};

// Between base_lr and max_lr in straight lines (Smith 2017), the height scaled by 1, by 2^(1-cycle)
// or by gamma^epoch; momentum, or the first beta, runs against it.
class CyclicLR : public GroupScheduler {
 public:
  CyclicLR(Optimizer& optimizer, CyclicLROptions options);

 private:
  double next_lr(int64_t group) const override;
  std::optional<double> next_momentum(int64_t group) const override;
  // How much of the way from base to maximum is gone, scaled.
  double height() const;

  CyclicLROptions options_;
};

struct OneCycleLROptions {
  std::vector<double> max_lr = {};
  int64_t total_steps = 0;  // 0: epochs × steps_per_epoch
  int64_t epochs = 0;
  int64_t steps_per_epoch = 0;
  double pct_start = 0.3;
  std::string anneal_strategy = "cos";  // or "linear"
  bool cycle_momentum = true;
  std::vector<double> base_momentum = {0.85};
  std::vector<double> max_momentum = {0.95};
  double div_factor = 25;
  double final_div_factor = 1e4;
  bool three_phase = false;
};

// From max_lr / div_factor up to max_lr and down to the first / final_div_factor (Smith and Topin
// 2019); three_phase: down as far as up, then the rest. Going beyond total_steps is an error.
class OneCycleLR : public GroupScheduler {
 public:
  OneCycleLR(Optimizer& optimizer, OneCycleLROptions options);

 private:
  double next_lr(int64_t group) const override;
  std::optional<double> next_momentum(int64_t group) const override;

  enum class Level { kLow, kHigh, kEnd };

  struct Stretch {
    double end_step;
    Level from, to;
  };

  // The stretch of last_epoch() and how much of it is done.
  std::pair<Stretch, double> place() const;
  double anneal(double from, double to, double done) const;

  OneCycleLROptions options_;
  std::vector<Stretch> stretches_;
};

}  // namespace flow::optim::lr_scheduler
