// Learning rate schedules. Names, arguments and formulas are PyTorch's, the recursive forms
// included: a schedule multiplies the rate the optimizer has, so that schedules chain and a rate
// set by hand is carried on. Call optimizer.step(), then scheduler.step().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nn/optim/optimizer.h"

namespace flow::optim::lr_scheduler {

// What every schedule offers; the optimizer must outlive it.
class LRScheduler {
 public:
  virtual ~LRScheduler() = default;
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;

  // Goes to the next epoch and sets the rates of all groups.
  virtual void step() = 0;

  // The epoch the rates in force belong to; 0 after construction.
  int64_t last_epoch() const { return last_epoch_; }

  // The rates in force, by group.
  std::vector<double> last_lr() const;

  Optimizer& optimizer() const { return *optimizer_; }

  // float64 scalars by name, "last_epoch" among them; those of inner schedules begin with their
  // number and a dot. Options and functions are not part of it.
  virtual nn::StateDict state_dict() const;
  // Throws InvalidArgument, before anything is changed, when a name is missing or unexpected.
  virtual void load_state_dict(const nn::StateDict& state);

 protected:
  explicit LRScheduler(Optimizer& optimizer) : optimizer_(&optimizer) {}

  // Numbers beside last_epoch that a state holds.
  struct Number {
    std::string name;
    double* value;
  };

  virtual std::vector<Number> numbers() { return {}; }

  // Begins at epoch 0, as at construction.
  virtual void begin() = 0;
  // Begins at epoch 0 in the middle of a sequence, from the closed form where there is one.
  virtual void restart() = 0;

  // Takes back the epoch that construction counted.
  virtual void rewind() { --last_epoch_; }

  int64_t last_epoch_ = -1;

 private:
  friend class CombinedScheduler;

  Optimizer* optimizer_;
};

// A schedule given by the rate of one group in one epoch. Subclasses end their constructor with
// begin().
class GroupScheduler : public LRScheduler {
 public:
  void step() final;

 protected:
  explicit GroupScheduler(Optimizer& optimizer);

  // The rate of a group in epoch last_epoch(), from its rate in the epoch before.
  virtual double next_lr(int64_t group) const = 0;

  // The same from the initial rate alone.
  virtual double closed_lr(int64_t group) const { return next_lr(group); }

  // Momentum (or the first beta) of a group in epoch last_epoch(), where the schedule sets it.
  virtual std::optional<double> next_momentum(int64_t /*group*/) const { return std::nullopt; }

  // Counts the epoch on.
  virtual void advance() { ++last_epoch_; }

  void begin() final;
  void restart() final;

  double group_lr(int64_t group) const { return optimizer().lr(group); }

  double base_lr(int64_t group) const { return base_lrs_.at(static_cast<size_t>(group)); }

  // Construction asks for the first rates: recursive forms leave them as they are.
  bool is_initial() const { return is_initial_; }

  std::vector<double> base_lrs_;  // by group; the rates when the first schedule was attached

 private:
  void apply(bool closed);

  bool is_initial_ = false;
};

// One value for all groups or one for each; throws InvalidArgument for another number of values.
std::vector<double> per_group(const char* scheduler, const char* name,
                              const std::vector<double>& values, const Optimizer& optimizer);

}  // namespace flow::optim::lr_scheduler
