// Optimizers: update rules over groups of parameters.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor.h"
#include "nn/module.h"

namespace flow::optim {

// Parameters that share options.
template <class Options>
struct ParamGroup {
  std::vector<Tensor> params = {};
  Options options = {};
};

// What every optimizer offers. Not thread safe.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Drops all gradients.
  void zero_grad();
  // Updates every parameter that has a gradient, in place and unrecorded.
  void step();
  // Learning rate of a group.
  virtual double lr(int64_t group = 0) const = 0;
  // Of all groups.
  virtual void set_lr(double lr) = 0;
  virtual int64_t num_groups() const = 0;

  // State by parameter number (counted over all groups) and name: "3.exp_avg"; step counts and
  // learning rates are float64 scalars ("3.step", "group.0.lr").
  nn::StateDict state_dict() const;
  // Restores it; throws InvalidArgument, before anything is changed, when names or shapes do not
  // fit.
  void load_state_dict(const nn::StateDict& state);

 protected:
  // What an update rule keeps for one parameter.
  struct ParamState {
    int64_t step = 0;
    std::vector<Tensor> buffers;  // as buffer_names(), made at the first step
  };

  Optimizer() = default;
  // Calls fn(parameter, its number) in order.
  virtual void for_each_param(const std::function<void(const Tensor&, size_t)>& fn) const = 0;
  // One step of one parameter; `state.step` counts from 1.
  virtual void update(const Tensor& parameter, const Tensor& grad, size_t number,
                      ParamState& state) = 0;
  virtual std::vector<std::string> buffer_names() const = 0;
  virtual void set_group_lr(int64_t group, double lr) = 0;

 private:
  std::vector<ParamState> states_;  // by parameter number
};

// Keeps the groups and their options; Derived has `update_with(parameter, grad, options, state)`.
template <class Options>
class GroupedOptimizer : public Optimizer {
 public:
  double lr(int64_t group = 0) const override { return groups_.at(index(group)).options.lr; }

  void set_lr(double lr) override {
    for (auto& group : groups_)
      group.options.lr = lr;
  }

  int64_t num_groups() const override { return static_cast<int64_t>(groups_.size()); }

  const std::vector<ParamGroup<Options>>& groups() const { return groups_; }

 protected:
  explicit GroupedOptimizer(std::vector<ParamGroup<Options>> groups) : groups_(std::move(groups)) {
    for (size_t g = 0; g < groups_.size(); ++g) {
      group_of_.insert(group_of_.end(), groups_[g].params.size(), g);
    }
  }

  void for_each_param(const std::function<void(const Tensor&, size_t)>& fn) const override {
    size_t number = 0;
    for (const auto& group : groups_) {
      for (const Tensor& parameter : group.params)
        fn(parameter, number++);
    }
  }

  const Options& options_of(size_t number) const { return groups_[group_of_[number]].options; }

  void set_group_lr(int64_t group, double lr) override { groups_.at(index(group)).options.lr = lr; }

 private:
  static size_t index(int64_t group) { return static_cast<size_t>(group); }

  std::vector<ParamGroup<Options>> groups_;
  std::vector<size_t> group_of_;  // by parameter number
};

}  // namespace flow::optim
