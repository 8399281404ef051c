// Marks the part of a training step in which optimizers run.
#pragma once

#include <utility>

#include "core/context.h"

namespace flow::optim {

// Nodes that are traced while an instance lives belong to the update phase.
class UpdatePhase {
 public:
  UpdatePhase() : outer_(std::exchange(thread_state().phase, Phase::kUpdate)) {}

  ~UpdatePhase() { thread_state().phase = outer_; }

  UpdatePhase(const UpdatePhase&) = delete;
  UpdatePhase& operator=(const UpdatePhase&) = delete;

 private:
  Phase outer_;
};

}  // namespace flow::optim
