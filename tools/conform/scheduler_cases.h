// Schedules by name and arguments, as the cases give them.
#pragma once

#include <memory>

#include "nn/optim/lr_plateau.h"
#include "nn/optim/lr_scheduler.h"
#include "tools/conform/spec.h"

namespace flow::conform {

// A schedule and, before it, the ones it is made of.
struct ScheduleCase {
  std::vector<std::unique_ptr<optim::lr_scheduler::LRScheduler>> owned;
  std::unique_ptr<optim::lr_scheduler::ReduceLROnPlateau> plateau;

  // metric is for the plateau.
  void step(double metric);
  nn::StateDict state_dict() const;
  void load_state_dict(const nn::StateDict& state);
};

ScheduleCase make_schedule(const Json& spec, optim::Optimizer& optimizer);

struct Rates {
  std::vector<double> lr, momentum;
};

// What is in force during each of 50 steps of SGD; from `resume_at` on with objects made anew from
// the state of the first.
Rates run_schedule_case(const Json& spec, size_t resume_at = 50);

}  // namespace flow::conform
