// Learning rate schedules by name and arguments, as specs give them.
#pragma once

#include <memory>

#include "nn/optim/lr_plateau.h"
#include "nn/optim/lr_scheduler.h"
#include "tools/flow_conform/attrs.h"

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

// spec: {"scheduler", "args"}. Throws NotSupported for a schedule or argument the library lacks.
ScheduleCase make_schedule(const Json& spec, optim::Optimizer& optimizer);

}  // namespace flow::conform
