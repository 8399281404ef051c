#include "nn/optim/lr_combine.h"

#include <algorithm>

#include "core/calls/site_scope.h"
#include "core/error.h"

namespace flow::optim::lr_scheduler {

CombinedScheduler::CombinedScheduler(const char* name, Optimizer& optimizer,
                                     std::vector<LRScheduler*> schedulers, Site site)
    : LRScheduler(optimizer), schedulers_(std::move(schedulers)) {
  for (const LRScheduler* scheduler : schedulers_) {
    if (&scheduler->optimizer() != &optimizer) {
      throw InvalidArgument(str("[", name,
                                "] the schedules belong to different optimizers; make all "
                                "of them for the same optimizer"),
                            site);
    }
  }
  last_epoch_ = 0;
}

void CombinedScheduler::rewind() {
  for (LRScheduler* scheduler : schedulers_)
    scheduler->rewind();
}

nn::StateDict CombinedScheduler::state_dict() const {
  nn::StateDict state = LRScheduler::state_dict();
  for (size_t i = 0; i < schedulers_.size(); ++i) {
    for (const auto& [name, value] : schedulers_[i]->state_dict())
      state.emplace(str(i, '.', name), value);
  }
  return state;
}

void CombinedScheduler::load_state(const nn::StateDict& state) {
  nn::StateDict own;
  std::vector<nn::StateDict> parts(schedulers_.size());
  for (const auto& [name, value] : state) {
    const size_t dot = name.find('.');
    if (dot == std::string::npos) {
      own.emplace(name, value);
      continue;
    }
    size_t i = 0;
    while (i < parts.size() && std::to_string(i) != name.substr(0, dot))
      ++i;
    if (i == parts.size()) {
      throw InvalidArgument(
          str("[lr_scheduler] '", name, "' in the state belongs to none of the ", parts.size(),
              " schedules; nothing was loaded; use the state of the same combination"));
    }
    parts[i].emplace(name.substr(dot + 1), value);
  }
  const nn::StateDict before = state_dict();
  try {
    for (size_t i = 0; i < parts.size(); ++i)
      schedulers_[i]->load_state_dict(parts[i]);
    LRScheduler::load_state(own);
  } catch (...) {
    load_state(before);  // cannot fail: this is the scheduler's current state
    throw;
  }
}

namespace {
Optimizer& optimizer_of(const std::vector<LRScheduler*>& schedulers, Site site) {
  if (schedulers.empty()) {
    throw InvalidArgument("[ChainedScheduler] the list of schedules is empty; give at least one",
                          site);
  }
  return schedulers[0]->optimizer();
}
}  // namespace

ChainedScheduler::ChainedScheduler(const std::vector<LRScheduler*>& schedulers, Site site)
    : CombinedScheduler("ChainedScheduler", optimizer_of(schedulers, site), schedulers, site) {}

void ChainedScheduler::run_step() {
  ++last_epoch_;
  for (size_t i = 0; i < num_parts(); ++i)
    part(i).step();
}

void ChainedScheduler::restart() {
  last_epoch_ = 0;
  for (size_t i = 0; i < num_parts(); ++i)
    restart_part(part(i));
}

SequentialLR::SequentialLR(Optimizer& optimizer, const std::vector<LRScheduler*>& schedulers,
                           SequentialLROptions options, Site site)
    : CombinedScheduler("SequentialLR", optimizer, schedulers, site), options_(std::move(options)) {
  const SiteScope scope(site);
  if (schedulers.empty() || options_.milestones.size() + 1 != schedulers.size()) {
    throw InvalidArgument(str("[SequentialLR] the number of milestones does not fit; received ",
                              schedulers.size(), " schedules and ", options_.milestones.size(),
                              " milestones; give one milestone less than schedules"));
  }
  if (!std::is_sorted(options_.milestones.begin(), options_.milestones.end())) {
    throw InvalidArgument(
        "[SequentialLR] milestones must be in ascending order; sort them together with the "
        "schedules");
  }
  for (int64_t group = 0; group < optimizer.num_groups(); ++group)
    optimizer.set_group_lr(group, optimizer.initial_lr(group));
  rewind();
  begin_part(part(current()));
}

size_t SequentialLR::current() const {
  const auto& milestones = options_.milestones;
  const auto next = std::upper_bound(milestones.begin(), milestones.end(), last_epoch());
  return static_cast<size_t>(next - milestones.begin());
}

void SequentialLR::run_step() {
  ++last_epoch_;
  const size_t i = current();
  if (i > 0 && options_.milestones[i - 1] == last_epoch()) {
    restart_part(part(i));
  } else {
    part(i).step();
  }
}

void SequentialLR::restart() {
  last_epoch_ = 0;
  restart_part(part(current()));
}

}  // namespace flow::optim::lr_scheduler
