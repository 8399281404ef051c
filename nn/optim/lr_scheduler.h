// The base of learning rate schedules. Names, arguments and formulas are PyTorch's, and so are the
// recursive forms: a schedule multiplies the current rate of the optimizer, so schedules can be
// chained and a rate set by hand stays in effect. Call optimizer.step() first, then
// scheduler.step().
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nn/optim/optimizer.h"

namespace flow::optim::lr_scheduler {

// One number for all groups of an optimizer, `0.1`, or one for each group, `{0.1, 0.2}`.
struct PerGroup : std::vector<double> {
  PerGroup() = default;

  PerGroup(double value) : vector{value} {}  // NOLINT(google-explicit-constructor)

  PerGroup(std::initializer_list<double> values) : vector(values) {}

  PerGroup(std::vector<double> values)  // NOLINT(google-explicit-constructor)
      : vector(std::move(values)) {}
};

// The interface of schedules that step by epoch. The optimizer must outlive the schedule.
class LRScheduler {
 public:
  virtual ~LRScheduler() = default;
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;

  // Advances to the next epoch and sets the rates of all groups.
  void step(Site site = Site::here());

  // The epoch that the current rates belong to; 0 after construction.
  int64_t last_epoch() const { return last_epoch_; }

  // The current rates, by group.
  std::vector<double> last_lr() const;

  Optimizer& optimizer() const { return *optimizer_; }

  // The state as float64 scalars, "last_epoch" and the initial rates, "base_lr.0", among them.
  // Names of inner schedules are prefixed with their number and a dot. Options and functions are
  // not part of the state.
  virtual nn::StateDict state_dict() const;
  // Throws InvalidArgument, before anything is changed, if a name is missing or unexpected. Initial
  // rates may be missing; they stay then.
  void load_state_dict(const nn::StateDict& state, Site site = Site::here());

 protected:
  explicit LRScheduler(Optimizer& optimizer) : optimizer_(&optimizer) {}

  // A number of the state other than last_epoch.
  struct Number {
    std::string name;
    double* value;
    bool may_be_missing = false;  // in a state that is loaded
  };

  virtual std::vector<Number> numbers() { return {}; }

  // What step() does.
  virtual void run_step() = 0;
  // What load_state_dict() does.
  virtual void load_state(const nn::StateDict& state);
  // Sets epoch 0, as at construction.
  virtual void begin() = 0;
  // Sets epoch 0 within a sequence of schedules, using the closed form if there is one.
  virtual void restart() = 0;

  // Undoes the step that construction made.
  virtual void rewind() { --last_epoch_; }

  int64_t last_epoch_ = -1;

 private:
  friend class CombinedScheduler;

  Optimizer* optimizer_;
};

// A schedule defined by the rate of one group in one epoch. Subclasses call begin() at the end of
// their constructor.
class GroupScheduler : public LRScheduler {
 protected:
  explicit GroupScheduler(Optimizer& optimizer);

  // The rate of a group in epoch last_epoch(), computed from its rate in the previous epoch.
  virtual double next_lr(int64_t group) const = 0;

  // The same rate, computed from the initial rate alone.
  virtual double closed_lr(int64_t group) const { return next_lr(group); }

  std::vector<Number> numbers() override;

  // The momentum, or the first beta, of a group in epoch last_epoch(); empty if the schedule does
  // not set it.
  virtual std::optional<double> next_momentum(int64_t /*group*/) const { return std::nullopt; }

  // Advances last_epoch() by one.
  virtual void advance() { ++last_epoch_; }

  void run_step() final;
  void begin() final;
  void restart() final;

  double group_lr(int64_t group) const { return optimizer().lr(group, Site::none()); }

  double base_lr(int64_t group) const { return base_lrs_.at(static_cast<size_t>(group)); }

  // True while construction sets the rates of epoch 0, where recursive forms keep the current rate.
  bool is_initial() const { return is_initial_; }

  std::vector<double> base_lrs_;  // by group: the rates when the first schedule was attached

 private:
  void apply(bool closed);

  bool is_initial_ = false;
};

// Expands `values` to one value per group. Throws InvalidArgument unless there is one value, or one
// for each group.
std::vector<double> per_group(const char* scheduler, const char* name,
                              const std::vector<double>& values, const Optimizer& optimizer);

}  // namespace flow::optim::lr_scheduler
