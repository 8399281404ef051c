#include "nn/optim/lr_scheduler.h"

#include "core/calls/site_scope.h"
#include "core/error.h"
#include "ops/creation/creation.h"

namespace flow::optim::lr_scheduler {

namespace {
Tensor scalar(double value) {
  return full({}, value, {.dtype = float64});
}
}  // namespace

std::vector<double> LRScheduler::last_lr() const {
  std::vector<double> rates;
  for (int64_t group = 0; group < optimizer_->num_groups(); ++group)
    rates.push_back(optimizer_->lr(group));
  return rates;
}

nn::StateDict LRScheduler::state_dict() const {
  nn::StateDict state{{"last_epoch", scalar(static_cast<double>(last_epoch_))}};
  // numbers() returns pointers that may be written through; this function only reads.
  for (const Number& number : const_cast<LRScheduler*>(this)->numbers())
    state.emplace(number.name, scalar(*number.value));
  return state;
}

void LRScheduler::step(Site site) {
  const SiteScope scope(site);
  run_step();
}

void LRScheduler::load_state_dict(const nn::StateDict& state, Site site) {
  const SiteScope scope(site);
  load_state(state);
}

void LRScheduler::load_state(const nn::StateDict& state) {
  std::vector<Number> own = numbers();
  std::erase_if(own, [&](const Number& number) {
    return number.may_be_missing && !state.contains(number.name);
  });
  size_t num_found = state.contains("last_epoch");
  for (const Number& number : own)
    num_found += state.contains(number.name);
  if (num_found != own.size() + 1 || num_found != state.size()) {
    throw InvalidArgument(str("[lr_scheduler] the state does not fit the schedule: it has ",
                              state.size(), " names and ", num_found, " of the ", own.size() + 1,
                              " expected; nothing was loaded; use the state of the same schedule"));
  }
  last_epoch_ = state.at("last_epoch").item<int64_t>();
  for (const Number& number : own)
    *number.value = state.at(number.name).item<double>();
}

GroupScheduler::GroupScheduler(Optimizer& optimizer) : LRScheduler(optimizer) {
  for (int64_t group = 0; group < optimizer.num_groups(); ++group)
    base_lrs_.push_back(optimizer.initial_lr(group));
}

std::vector<LRScheduler::Number> GroupScheduler::numbers() {
  std::vector<Number> rates;
  for (size_t group = 0; group < base_lrs_.size(); ++group)
    rates.push_back({str("base_lr.", group), &base_lrs_[group], true});
  return rates;
}

void GroupScheduler::apply(bool closed) {
  const int64_t num_groups = optimizer().num_groups();
  if (num_groups != static_cast<int64_t>(base_lrs_.size())) {
    throw InvalidArgument(str("[lr_scheduler] the schedule was made for ", base_lrs_.size(),
                              " parameter groups, but the optimizer has ", num_groups,
                              "; make the schedule after adding the last group"));
  }
  for (int64_t group = 0; group < num_groups; ++group) {
    optimizer().set_group_lr(group, closed ? closed_lr(group) : next_lr(group));
    if (const auto momentum = next_momentum(group)) {
      optimizer().set_group_momentum(group, *momentum);
    }
  }
}

void GroupScheduler::run_step() {
  advance();
  apply(false);
}

void GroupScheduler::begin() {
  is_initial_ = true;
  run_step();
  is_initial_ = false;
}

void GroupScheduler::restart() {
  last_epoch_ = 0;
  apply(true);
}

std::vector<double> per_group(const char* scheduler, const char* name,
                              const std::vector<double>& values, const Optimizer& optimizer) {
  const auto num_groups = static_cast<size_t>(optimizer.num_groups());
  if (values.size() == 1) return std::vector<double>(num_groups, values[0]);
  if (values.size() == num_groups) return values;
  throw InvalidArgument(str("[", scheduler, "] ", name, " has the wrong length; received ",
                            values.size(), " values for the optimizer's ", num_groups,
                            " parameter groups; give one value, or one for each group"));
}

}  // namespace flow::optim::lr_scheduler
