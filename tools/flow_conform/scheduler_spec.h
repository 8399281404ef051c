// Makes learning rate schedules from the names and arguments in specs.
#pragma once

#include <memory>

#include "nn/optim/lr_plateau.h"
#include "nn/optim/lr_scheduler.h"
#include "tools/flow_conform/attrs.h"

namespace flow::conform {

// A schedule, preceded by the schedules from which it is made.
struct ScheduleCase {
  std::vector<std::unique_ptr<optim::lr_scheduler::LRScheduler>> owned;
  std::unique_ptr<optim::lr_scheduler::ReduceLROnPlateau> plateau;

  // `metric` is used by ReduceLROnPlateau only.
  void step(double metric);
  nn::StateDict state_dict() const;
  void load_state_dict(const nn::StateDict& state);
};

// `spec` is {"scheduler", "args"}. Throws NotSupported for a schedule or argument that flow does
// not have.
ScheduleCase make_schedule(const Json& spec, optim::Optimizer& optimizer);

}  // namespace flow::conform
