#include "nn/optim/lr_cycle.h"

#include <cmath>
#include <numbers>

#include "core/calls/site_scope.h"
#include "core/error.h"

namespace flow::optim::lr_scheduler {

namespace {
constexpr double kPi = std::numbers::pi;

double to_double(int64_t value) {
  return static_cast<double>(value);
}

size_t index(int64_t group) {
  return static_cast<size_t>(group);
}

// Sets the rates that a cycle begins with, before the scheduler reads them as initial rates.
Optimizer& with_base_lr(Optimizer& optimizer, const CyclicLROptions& options, Site site) {
  const SiteScope scope(site);
  const auto rates = per_group("CyclicLR", "base_lr", options.base_lr, optimizer);
  for (int64_t group = 0; group < optimizer.num_groups(); ++group)
    optimizer.set_group_lr(group, rates[index(group)]);
  return optimizer;
}

// Sets the momentum that a cycle begins with.
void set_momenta(Optimizer& optimizer, const std::vector<double>& momenta) {
  for (int64_t group = 0; group < optimizer.num_groups(); ++group)
    optimizer.set_group_momentum(group, momenta[index(group)]);
}
}  // namespace

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, const CosineAnnealingLROptions& options,
                                     Site site)
    : GroupScheduler(optimizer), options_(options) {
  const SiteScope scope(site);
  if (options.T_max <= 0) {
    throw InvalidArgument(
        str("[CosineAnnealingLR] T_max must be positive; received ", options.T_max));
  }
  begin();
}

double CosineAnnealingLR::next_lr(int64_t group) const {
  if (is_initial()) return group_lr(group);
  const double length = to_double(options_.T_max), low = options_.eta_min;
  // The previous rate was eta_min.
  if ((last_epoch() - 1 - options_.T_max) % (2 * options_.T_max) == 0) {
    return group_lr(group) + (base_lr(group) - low) * (1 - std::cos(kPi / length)) / 2;
  }
  return (1 + std::cos(kPi * to_double(last_epoch()) / length)) /
             (1 + std::cos(kPi * to_double(last_epoch() - 1) / length)) * (group_lr(group) - low) +
         low;
}

double CosineAnnealingLR::closed_lr(int64_t group) const {
  const double low = options_.eta_min;
  return low + (base_lr(group) - low) *
                   (1 + std::cos(kPi * to_double(last_epoch()) / to_double(options_.T_max))) / 2;
}

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(
    Optimizer& optimizer, const CosineAnnealingWarmRestartsOptions& options, Site site)
    : GroupScheduler(optimizer), options_(options), length_(to_double(options.T_0)) {
  const SiteScope scope(site);
  if (options.T_0 <= 0 || options.T_mult < 1) {
    throw InvalidArgument(
        str("[CosineAnnealingWarmRestarts] T_0 must be positive and T_mult at "
            "least 1; received ",
            options.T_0, " and ", options.T_mult));
  }
  begin();
}

void CosineAnnealingWarmRestarts::advance() {
  if (last_epoch_ < 0) {
    current_ = 0;
    length_ = to_double(options_.T_0);
  } else if (++current_ >= length_) {
    current_ = std::fmod(current_, length_);
    length_ *= to_double(options_.T_mult);
  }
  ++last_epoch_;
}

std::vector<LRScheduler::Number> CosineAnnealingWarmRestarts::numbers() {
  std::vector<Number> own = GroupScheduler::numbers();
  own.push_back({"T_cur", &current_});
  own.push_back({"T_i", &length_});
  return own;
}

double CosineAnnealingWarmRestarts::next_lr(int64_t group) const {
  const double low = options_.eta_min;
  return low + (base_lr(group) - low) * (1 + std::cos(kPi * current_ / length_)) / 2;
}

CyclicLR::CyclicLR(Optimizer& optimizer, CyclicLROptions options, Site site)
    : GroupScheduler(with_base_lr(optimizer, options, site)), options_(std::move(options)) {
  const SiteScope scope(site);
  CyclicLROptions& o = options_;
  o.base_lr = per_group("CyclicLR", "base_lr", o.base_lr, optimizer);
  o.max_lr = per_group("CyclicLR", "max_lr", o.max_lr, optimizer);
  if (o.step_size_up <= 0 || o.step_size_down.value_or(1) <= 0) {
    throw InvalidArgument(
        str("[CyclicLR] step_size_up and step_size_down must be positive; received ",
            o.step_size_up, " and ", o.step_size_down.value_or(o.step_size_up)));
  }
  if (!o.scale_fn) {
    if (o.mode == "triangular") {
      o.scale_fn = [](double) { return 1.0; };
    } else if (o.mode == "triangular2") {
      o.scale_fn = [](double cycle) { return 1 / std::pow(2.0, cycle - 1); };
    } else if (o.mode == "exp_range") {
      o.scale_fn = [gamma = o.gamma](double epoch) { return std::pow(gamma, epoch); };
    } else {
      throw InvalidArgument(str("[CyclicLR] unknown mode; received '", o.mode,
                                "'; use triangular, triangular2 or exp_range"));
    }
    o.scale_mode = o.mode == "exp_range" ? "iterations" : "cycle";
  }
  if (o.scale_mode != "cycle" && o.scale_mode != "iterations") {
    throw InvalidArgument(str("[CyclicLR] unknown scale_mode; received '", o.scale_mode,
                              "'; use cycle or iterations"));
  }
  if (o.cycle_momentum) {
    o.base_momentum = per_group("CyclicLR", "base_momentum", o.base_momentum, optimizer);
    o.max_momentum = per_group("CyclicLR", "max_momentum", o.max_momentum, optimizer);
    set_momenta(optimizer, o.max_momentum);
  }
  begin();  // epoch 0 uses the optimizer's initial rates, which an earlier schedule may have set
  base_lrs_ = o.base_lr;
}

double CyclicLR::height() const {
  const auto up = to_double(options_.step_size_up);
  const double total = up + to_double(options_.step_size_down.value_or(options_.step_size_up));
  const double ratio = up / total;
  const double cycle = std::floor(1 + to_double(last_epoch()) / total);
  const double x = 1.0 + to_double(last_epoch()) / total - cycle;
  const double height = x <= ratio ? x / ratio : (x - 1) / (ratio - 1);
  return height *
         options_.scale_fn(options_.scale_mode == "cycle" ? cycle : to_double(last_epoch()));
}

double CyclicLR::next_lr(int64_t group) const {
  return base_lr(group) + (options_.max_lr[index(group)] - base_lr(group)) * height();
}

std::optional<double> CyclicLR::next_momentum(int64_t group) const {
  if (!options_.cycle_momentum) return std::nullopt;
  const double high = options_.max_momentum[index(group)];
  return high - (high - options_.base_momentum[index(group)]) * height();
}

OneCycleLR::OneCycleLR(Optimizer& optimizer, OneCycleLROptions options, Site site)
    : GroupScheduler(optimizer), options_(std::move(options)) {
  const SiteScope scope(site);
  OneCycleLROptions& o = options_;
  if (o.total_steps == 0) o.total_steps = o.epochs * o.steps_per_epoch;
  if (o.total_steps <= 0) {
    throw InvalidArgument(
        str("[OneCycleLR] the number of steps must be positive: set total_steps, or epochs and "
            "steps_per_epoch; received ",
            o.total_steps, ", ", o.epochs, " and ", o.steps_per_epoch));
  }
  if (!(o.pct_start >= 0 && o.pct_start <= 1)) {
    throw InvalidArgument(
        str("[OneCycleLR] pct_start must be a share from 0 to 1; received ", o.pct_start));
  }
  if (o.anneal_strategy != "cos" && o.anneal_strategy != "linear") {
    throw InvalidArgument(str("[OneCycleLR] unknown anneal_strategy; received '", o.anneal_strategy,
                              "'; use cos or linear"));
  }
  o.max_lr = per_group("OneCycleLR", "max_lr", o.max_lr, optimizer);
  for (int64_t group = 0; group < optimizer.num_groups(); ++group) {
    base_lrs_[index(group)] = o.max_lr[index(group)] / o.div_factor;
    optimizer.set_initial_lr(group, base_lrs_[index(group)]);
  }
  if (o.cycle_momentum) {
    o.base_momentum = per_group("OneCycleLR", "base_momentum", o.base_momentum, optimizer);
    o.max_momentum = per_group("OneCycleLR", "max_momentum", o.max_momentum, optimizer);
    set_momenta(optimizer, o.max_momentum);
  }
  const double rise = o.pct_start * to_double(o.total_steps);
  const double last = to_double(o.total_steps - 1);
  if (o.three_phase) {
    stretches_ = {{rise - 1, Level::kLow, Level::kHigh},
                  {2 * o.pct_start * to_double(o.total_steps) - 2, Level::kHigh, Level::kLow},
                  {last, Level::kLow, Level::kEnd}};
  } else {
    stretches_ = {{rise - 1, Level::kLow, Level::kHigh}, {last, Level::kHigh, Level::kEnd}};
  }
  begin();
}

std::pair<OneCycleLR::Stretch, double> OneCycleLR::place() const {
  const double step = to_double(last_epoch());
  if (last_epoch() > options_.total_steps) {
    throw InvalidArgument(str("[OneCycleLR] step ", last_epoch(),
                              " is beyond total_steps = ", options_.total_steps,
                              "; increase total_steps or stop calling step()"));
  }
  double start = 0;
  size_t i = 0;
  for (; i + 1 < stretches_.size() && step > stretches_[i].end_step; ++i)
    start = stretches_[i].end_step;
  const double length = stretches_[i].end_step - start;
  return {stretches_[i], length > 0 ? (step - start) / length : 1.0};
}

double OneCycleLR::anneal(double from, double to, double done) const {
  if (options_.anneal_strategy == "linear") return (to - from) * done + from;
  return to + (from - to) / 2.0 * (std::cos(kPi * done) + 1);
}

double OneCycleLR::next_lr(int64_t group) const {
  const auto [stretch, done] = place();
  const auto rate = [&](Level level) {
    if (level == Level::kHigh) return options_.max_lr[index(group)];
    return level == Level::kLow ? base_lr(group) : base_lr(group) / options_.final_div_factor;
  };
  return anneal(rate(stretch.from), rate(stretch.to), done);
}

std::optional<double> OneCycleLR::next_momentum(int64_t group) const {
  if (!options_.cycle_momentum) return std::nullopt;
  const auto [stretch, done] = place();
  const auto momentum = [&](Level level) {
    return level == Level::kHigh ? options_.base_momentum[index(group)]
                                 : options_.max_momentum[index(group)];
  };
  return anneal(momentum(stretch.from), momentum(stretch.to), done);
}

}  // namespace flow::optim::lr_scheduler
