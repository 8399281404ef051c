// Schedules made of other schedules. All parts must belong to one optimizer and outlive the
// combination.
#pragma once

#include "nn/optim/lr_scheduler.h"

namespace flow::optim::lr_scheduler {

// The base of combined schedules. Its state contains the states of the parts.
class CombinedScheduler : public LRScheduler {
 public:
  nn::StateDict state_dict() const override;

 protected:
  CombinedScheduler(const char* name, Optimizer& optimizer, std::vector<LRScheduler*> schedulers,
                    Site site);

  LRScheduler& part(size_t i) const { return *schedulers_[i]; }

  size_t num_parts() const { return schedulers_.size(); }

  static void begin_part(LRScheduler& part) { part.begin(); }

  static void restart_part(LRScheduler& part) { part.restart(); }

  // As in PyTorch, a combination inside another combination begins with an ordinary step.
  void begin() final { run_step(); }

  void load_state(const nn::StateDict& state) override;

  void rewind() final;

 private:
  std::vector<LRScheduler*> schedulers_;
};

// Steps all parts together, so that their factors multiply. Throws InvalidArgument without parts,
// or if they belong to different optimizers.
class ChainedScheduler : public CombinedScheduler {
 public:
  explicit ChainedScheduler(const std::vector<LRScheduler*>& schedulers, Site site = Site::here());

 private:
  void run_step() override;
  void restart() override;
};

struct SequentialLROptions {
  std::vector<int64_t> milestones = {};  // epochs in ascending order; one fewer than schedules
};

// Runs one part after another: part i + 1 begins at its epoch 0 in epoch milestones[i]. Throws
// InvalidArgument for another number of milestones or milestones that do not ascend.
class SequentialLR : public CombinedScheduler {
 public:
  SequentialLR(Optimizer& optimizer, const std::vector<LRScheduler*>& schedulers,
               SequentialLROptions options, Site site = Site::here());

 private:
  void run_step() override;
  void restart() override;
  // The index of the part that last_epoch() belongs to.
  size_t current() const;

  SequentialLROptions options_;
};

}  // namespace flow::optim::lr_scheduler
