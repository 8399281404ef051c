// Schedules made of schedules. The parts must outlive the whole and belong to one optimizer.
#pragma once

#include "nn/optim/lr_scheduler.h"

namespace flow::optim::lr_scheduler {

class CombinedScheduler : public LRScheduler {
 public:
  nn::StateDict state_dict() const override;
  void load_state_dict(const nn::StateDict& state) override;

 protected:
  CombinedScheduler(const char* name, Optimizer& optimizer, std::vector<LRScheduler*> schedulers);

  LRScheduler& part(size_t i) const { return *schedulers_[i]; }

  size_t num_parts() const { return schedulers_.size(); }

  static void begin_part(LRScheduler& part) { part.begin(); }

  static void restart_part(LRScheduler& part) { part.restart(); }

  // PyTorch takes the first step of a combination inside another as any other step.
  void begin() final { step(); }

  void rewind() final;

 private:
  std::vector<LRScheduler*> schedulers_;
};

// All parts step together: their factors multiply.
class ChainedScheduler : public CombinedScheduler {
 public:
  explicit ChainedScheduler(const std::vector<LRScheduler*>& schedulers);
  void step() override;

 private:
  void restart() override;
};

struct SequentialLROptions {
  std::vector<int64_t> milestones = {};  // ascending; one fewer than schedules
};

// One part after another; part i + 1 begins, at its epoch 0, in epoch milestones[i].
class SequentialLR : public CombinedScheduler {
 public:
  SequentialLR(Optimizer& optimizer, const std::vector<LRScheduler*>& schedulers,
               SequentialLROptions options);
  void step() override;

 private:
  void restart() override;
  // The part of last_epoch().
  size_t current() const;

  SequentialLROptions options_;
};

}  // namespace flow::optim::lr_scheduler
