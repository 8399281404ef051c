// Optimizers: update rules over groups of parameters.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor.h"
#include "nn/module.h"

namespace flow::nn {
class ZeroParameters;
}

namespace flow::optim {

// Parameters that share options.
template <class Options>
struct ParamGroup {
  std::vector<Tensor> params = {};
  Options options = {};
};

// What every optimizer offers. Not thread safe.
//
// With `shard_state` in a group's options, the state of its global parameters is cut over ranks
// that hold the same part of the parameter: each updates its share and the shares are gathered
// (ZeRO stage 1, Rajbhandari et al. 2020). Values are those of the whole update.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Drops all gradients.
  void zero_grad();
  // Updates every parameter that has a gradient, in place and unrecorded.
  void step();
  // Of all groups, in order.
  std::vector<Tensor> parameters() const;

  // Learning rate of a group. InvalidArgument, here and below, for a group that is not there.
  virtual double lr(int64_t group = 0) const = 0;
  // Of all groups.
  void set_lr(double lr);
  virtual void set_group_lr(int64_t group, double lr) = 0;
  // The rate a group had when the first scheduler was attached to it.
  double initial_lr(int64_t group = 0);
  void set_initial_lr(int64_t group, double lr);
  // The momentum of a group, or the first of its betas; none where the rule has neither.
  virtual std::optional<double> momentum(int64_t group = 0) const = 0;
  // InvalidArgument where the rule has none.
  virtual void set_group_momentum(int64_t group, double momentum) = 0;
  virtual int64_t num_groups() const = 0;

  // Sets shard_state in all groups; throws InvalidArgument where there is state that lies whole.
  virtual void shard_state() = 0;

  // State by parameter number (counted over all groups) and name: "3.exp_avg"; step counts,
  // learning rates and momenta are float64 scalars ("3.step", "group.0.lr", "group.0.momentum").
  nn::StateDict state_dict() const;
  // Restores it, in the layouts that step() gives it; throws InvalidArgument, before anything is
  // changed, when names or shapes do not fit.
  void load_state_dict(const nn::StateDict& state);

 protected:
  // What an update rule keeps for one parameter.
  struct ParamState {
    int64_t step = 0;
    std::vector<Tensor> buffers;  // as buffer_names(); undefined until the rule makes them
    std::vector<double> numbers;  // as number_names(); they start at 1
    // While a compiled step is traced: scalars that hold rates() of the step that runs; else empty.
    std::vector<Tensor> traced_rates;

    Tensor rate(size_t i) const { return traced_rates.empty() ? Tensor() : traced_rates[i]; }
  };

  Optimizer() = default;
  // Calls fn(parameter, its number) in order.
  virtual void for_each_param(const std::function<void(const Tensor&, size_t)>& fn) const = 0;
  // One step of one parameter; `state.step` counts from 1.
  virtual void update(const Tensor& parameter, const Tensor& grad, size_t number,
                      ParamState& state) = 0;
  virtual std::vector<std::string> buffer_names() const = 0;
  virtual bool shards_state(size_t number) const = 0;

  virtual std::vector<std::string> number_names() const { return {}; }

  // Brings the numbers of a parameter, but for its step, to the step that begins.
  virtual void advance(size_t /*number*/, ParamState& /*state*/) const {}

  // What changes from step to step in the update of a parameter, for a compiled one: update() takes
  // these from state.rate(i) where they are defined. The learning rate and the step by default.
  virtual void write_rates(size_t number, const ParamState& state, std::span<double> rates) const {
    rates[0] = lr(group_of(number));
    rates[1] = static_cast<double>(state.step);
  }

  virtual size_t num_rates() const { return 2; }

  // Whether every parameter that has made a step has the first of buffer_names().
  virtual bool always_has_buffer() const { return true; }

  // Whether the first update of a parameter differs from the others in more than its rates.
  virtual bool has_special_first_step(size_t /*number*/) const { return false; }

  virtual int64_t group_of(size_t number) const = 0;

  // Buffer `i`, made of `value` like the parameter at the first use.
  static const Tensor& buffer(ParamState& state, size_t i, const Tensor& parameter,
                              double value = 0);
  // Throws InvalidArgument when a new parameter is undefined, no leaf or among `present` or the
  // other new ones.
  static void check_new_params(const std::vector<Tensor>& params,
                               const std::vector<Tensor>& present);
  [[noreturn]] static void refuse_momentum();
  // Throws InvalidArgument unless there is such a group.
  void check_group(int64_t group) const;
  // Throws InvalidArgument when a step was made.
  void check_no_state() const;

 private:
  friend class TracedStep;
  friend class nn::ZeroParameters;

  NdSbp state_sbp(const Tensor& parameter, size_t number) const;
  // The state of a parameter, its step counted.
  ParamState& begin_step(size_t number);
  // Updates a parameter, or this rank's share of it.
  void apply(const Tensor& parameter, const Tensor& grad, size_t number, ParamState& state);

  std::vector<ParamState> states_;                  // by parameter number
  std::vector<std::optional<double>> initial_lrs_;  // by group
  // By parameter number: how one lay that a graph has cut since (ZeRO stage 3); else empty.
  std::vector<NdSbp> whole_sbps_;
};

// Keeps the groups and their options. Beside Options stands `void check_options(const Options&)`,
// which throws InvalidArgument.
template <class Options>
class GroupedOptimizer : public Optimizer {
 public:
  explicit GroupedOptimizer(const std::vector<Tensor>& params, const Options& options = {})
      : GroupedOptimizer(std::vector<ParamGroup<Options>>{{params, options}}) {}

  explicit GroupedOptimizer(const std::vector<ParamGroup<Options>>& groups) {
    for (const auto& group : groups)
      add_param_group(group);
  }

  // Numbers of the parameters there are stay, so that state goes on.
  void add_param_group(ParamGroup<Options> group) {
    check_options(group.options);
    std::vector<Tensor> present;
    for (const auto& other : groups_)
      present.insert(present.end(), other.params.begin(), other.params.end());
    check_new_params(group.params, present);
    group_of_.insert(group_of_.end(), group.params.size(), groups_.size());
    groups_.push_back(std::move(group));
  }

  double lr(int64_t group = 0) const override { return groups_[index(group)].options.lr; }

  void set_group_lr(int64_t group, double lr) override { groups_[index(group)].options.lr = lr; }

  std::optional<double> momentum(int64_t group = 0) const override {
    const Options& options = groups_[index(group)].options;
    if constexpr (requires { options.betas; }) return options.betas.first;
    if constexpr (requires { options.momentum; }) return options.momentum;
    return std::nullopt;
  }

  void set_group_momentum(int64_t group, double momentum) override {
    Options& options = groups_[index(group)].options;
    if constexpr (requires { options.betas; }) {
      options.betas.first = momentum;
    } else if constexpr (requires { options.momentum; }) {
      options.momentum = momentum;
    } else {
      refuse_momentum();
    }
  }

  int64_t num_groups() const override { return static_cast<int64_t>(groups_.size()); }

  void shard_state() override {
    for (auto& group : groups_) {
      if (!group.options.shard_state) check_no_state();
      group.options.shard_state = true;
    }
  }

  const std::vector<ParamGroup<Options>>& groups() const { return groups_; }

 protected:
  void for_each_param(const std::function<void(const Tensor&, size_t)>& fn) const override {
    size_t number = 0;
    for (const auto& group : groups_) {
      for (const Tensor& parameter : group.params)
        fn(parameter, number++);
    }
  }

  bool shards_state(size_t number) const override { return options_of(number).shard_state; }

  int64_t group_of(size_t number) const override { return static_cast<int64_t>(group_of_[number]); }

  const Options& options_of(size_t number) const { return groups_[group_of_[number]].options; }

 private:
  size_t index(int64_t group) const {
    check_group(group);
    return static_cast<size_t>(group);
  }

  std::vector<ParamGroup<Options>> groups_;
  std::vector<size_t> group_of_;  // by parameter number
};

}  // namespace flow::optim
