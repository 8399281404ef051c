// The base of all optimizers: groups of parameters, learning rates, state and its sharding.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/tensor.h"
#include "nn/module.h"

namespace flow::nn {
class ZeroParameters;
}

namespace flow::optim {

// Parameters that share one set of options.
template <class Options>
struct ParamGroup {
  std::vector<Tensor> params = {};
  Options options = {};
};

// The interface of every optimizer. Not thread safe.
//
// In the formulas of the update rules p is the parameter, g its gradient (negated with `maximize`)
// and t the number of the step, counted from 1. Options that a rule refuses are InvalidArgument.
//
// If a group's options set `shard_state`, the optimizer state of its global parameters is split
// over the ranks that hold the same part of a parameter: each rank updates its share, and the
// shares are gathered (ZeRO stage 1, Rajbhandari et al. 2020). The updated values are those of an
// unsharded update. step() is then collective.
//
// If a group's options set `master_weights` (SGD, Adam and AdamW), the state of each 16-bit
// parameter has a float32 copy of it, the `master` (Micikevicius et al. 2018). The whole state is
// float32, the update is that of the master, and the parameter is the master, rounded to nearest
// even. A parameter that the program writes between steps starts a new master there. Parameters of
// other dtypes have no master.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Sets all gradients to undefined.
  void zero_grad();
  // Updates in place every parameter that has a gradient. The update is not recorded by autograd.
  // Warns, once for each optimizer, if no parameter has one. Collective if global parameters got
  // another layout since their last step: their state gets it as well.
  void step(Site site = Site::here());
  // The parameters of all groups, in order.
  std::vector<Tensor> parameters() const;

  // The learning rate of a group. This and the functions below throw InvalidArgument if there is no
  // such group.
  double lr(int64_t group = 0, Site site = Site::here()) const;
  // Sets the learning rate of all groups.
  void set_lr(double lr);
  void set_group_lr(int64_t group, double lr, Site site = Site::here());
  // The learning rate that a group had when the first scheduler was attached to it.
  double initial_lr(int64_t group = 0, Site site = Site::here());
  void set_initial_lr(int64_t group, double lr, Site site = Site::here());
  // The momentum of a group, or the first of its betas; empty if the update rule has neither.
  std::optional<double> momentum(int64_t group = 0, Site site = Site::here()) const;
  // Throws InvalidArgument if the update rule has neither momentum nor betas.
  void set_group_momentum(int64_t group, double momentum, Site site = Site::here());
  virtual int64_t num_groups() const = 0;

  // Sets shard_state in all groups. Throws InvalidArgument if a step has already made unsharded
  // state.
  void shard_state(Site site = Site::here());

  // The optimizer's state. Tensors are named by the number of their parameter, counted over all
  // groups, for example "3.exp_avg". Step counts, learning rates and momenta are float64 scalars:
  // "3.step", "group.0.lr", "group.0.momentum".
  nn::StateDict state_dict() const;
  // Restores such a state, in the layouts that step() uses. A state without masters is accepted:
  // the parameters are the masters then. Throws InvalidArgument, before anything is changed, if
  // names or shapes do not match.
  void load_state_dict(const nn::StateDict& state, Site site = Site::here());

 protected:
  // The state of one parameter.
  struct ParamState {
    size_t number = 0;  // of the parameter
    int64_t step = 0;
    // One per entry of buffer_names(); undefined until the update rule makes them.
    std::vector<Tensor> buffers;
    std::vector<double> numbers;  // one per entry of number_names(); initially 1
    // Defined only while a compiled step is traced: scalars that hold the rates (see write_rates)
    // of the step that will run.
    std::vector<Tensor> traced_rates;

    Tensor rate(size_t i) const { return traced_rates.empty() ? Tensor() : traced_rates[i]; }
  };

  Optimizer() = default;
  // What the public functions of a group do; the group exists. assign_momentum() calls
  // refuse_momentum() if the update rule has neither momentum nor betas.
  virtual double lr_of(int64_t group) const = 0;
  virtual void assign_lr(int64_t group, double lr) = 0;
  virtual std::optional<double> momentum_of(int64_t group) const = 0;
  virtual void assign_momentum(int64_t group, double momentum) = 0;
  // What shard_state() does; calls check_no_state() for a group that is not sharded yet.
  virtual void shard_groups() = 0;
  // Calls fn(parameter, number of the parameter) in order.
  virtual void for_each_param(const std::function<void(const Tensor&, size_t)>& fn) const = 0;
  // Updates one parameter. `state.step` is 1 at its first update.
  virtual void update(const Tensor& parameter, const Tensor& grad, size_t number,
                      ParamState& state) = 0;
  virtual std::vector<std::string> buffer_names() const = 0;
  virtual bool shards_state(size_t number) const = 0;
  // True if the parameter has a master if it is 16-bit. The last of buffer_names() is then
  // "master".
  virtual bool wants_master(size_t number) const = 0;

  virtual std::vector<std::string> number_names() const { return {}; }

  // Updates the parameter's `numbers` for the step that begins; the step is already counted.
  virtual void advance(size_t /*number*/, ParamState& /*state*/) const {}

  // Writes the values that may change from step to step, by default the learning rate, the step and
  // the momentum or first beta. A compiled step gets them as inputs: update() uses state.rate(i)
  // where it is defined.
  virtual void write_rates(size_t number, const ParamState& state, std::span<double> rates) const {
    rates[0] = lr_of(group_of(number));
    rates[1] = static_cast<double>(state.step);
    rates[2] = momentum_of(group_of(number)).value_or(0);
  }

  virtual size_t num_rates() const { return 3; }

  // The shape of a parameter's buffer `i`. A dim in which it differs from the parameter's has
  // size 1.
  virtual Shape buffer_shape(size_t /*i*/, const Tensor& parameter) const {
    return parameter.shape();
  }

  // True if every parameter that was updated has the first of buffer_names().
  virtual bool always_has_buffer() const { return true; }

  // True if the first update of a parameter differs from later ones in more than its rates.
  virtual bool has_special_first_step(size_t /*number*/) const { return false; }

  virtual int64_t group_of(size_t number) const = 0;

  // The state of a parameter, for rules that update all parameters together.
  ParamState& state_of(size_t number);
  // Buffer `i`. The first step makes it, with the parameter's layout and filled with `value`; its
  // dtype is float32 if the parameter has a master, else the parameter's.
  const Tensor& buffer(ParamState& state, size_t i, const Tensor& parameter,
                       double value = 0) const;
  // The parameter's master, or an undefined tensor if it has none. A new one holds zeros, which the
  // update replaces by the parameter.
  Tensor master(ParamState& state, const Tensor& parameter) const;
  // Throws InvalidArgument if there is no new parameter, or if one is undefined, is not a leaf, or
  // occurs among `present` or twice among the new ones.
  static void check_new_params(const std::vector<Tensor>& params,
                               const std::vector<Tensor>& present, Site site);
  [[noreturn]] static void refuse_momentum();
  // Throws InvalidArgument if a step was made.
  void check_no_state() const;

 private:
  friend class TracedStep;
  friend class nn::ZeroParameters;

  // Throws InvalidArgument if there is no such group.
  void check_group(int64_t group) const;
  bool has_master(const Tensor& parameter, size_t number) const;
  DType state_dtype(const Tensor& parameter, size_t number) const;
  NdSbp state_sbp(const Tensor& parameter, size_t number) const;
  // The layout of a buffer of this shape whose parameter has the layout `sbp`.
  static NdSbp buffer_sbp(const Shape& shape, const Tensor& parameter, const NdSbp& sbp);
  // Moves the buffers of global parameters whose layout has changed since their last step.
  void lay_out_state();
  // Returns the state of a parameter after counting a step.
  ParamState& begin_step(size_t number);
  // Updates a parameter, or this rank's share of the parameter if its state is sharded.
  void apply(const Tensor& parameter, const Tensor& grad, size_t number, ParamState& state);

  std::vector<ParamState> states_;                  // by parameter number
  std::vector<std::optional<double>> initial_lrs_;  // by group
  // By parameter number: the layout a parameter had before a graph split it (ZeRO stage 3); empty
  // for the others.
  std::vector<NdSbp> whole_sbps_;
  bool has_warned_ = false;  // that no parameter has a gradient
};

// An optimizer whose groups have options of type Options. For Options there is a function `void
// check_options(const Options&)`, which throws InvalidArgument for values that the rule refuses.
template <class Options>
class GroupedOptimizer : public Optimizer {
 public:
  explicit GroupedOptimizer(const std::vector<Tensor>& params, const Options& options = {},
                            Site site = Site::here())
      : GroupedOptimizer(std::vector<ParamGroup<Options>>{{params, options}}, site) {}

  explicit GroupedOptimizer(const std::vector<ParamGroup<Options>>& groups,
                            Site site = Site::here()) {
    if (groups.empty()) check_new_params({}, {}, site);
    for (const auto& group : groups)
      add_param_group(group, site);
  }

  // Parameters that are already in the optimizer keep their numbers and their state. Throws
  // InvalidArgument for refused options and as check_new_params.
  void add_param_group(ParamGroup<Options> group, Site site = Site::here()) {
    try {
      check_options(group.options);
    } catch (Error& error) {
      error.add_place(site);
      throw;
    }
    std::vector<Tensor> present;
    for (const auto& other : groups_)
      present.insert(present.end(), other.params.begin(), other.params.end());
    check_new_params(group.params, present, site);
    group_of_.insert(group_of_.end(), group.params.size(), groups_.size());
    groups_.push_back(std::move(group));
  }

  // A group with the options of the first one as `change` leaves them:
  //
  //   optimizer.add_param_group(biases, [](auto& options) { options.weight_decay = 0; });
  template <std::invocable<Options&> Change>
  void add_param_group(const std::vector<Tensor>& params, const Change& change,
                       Site site = Site::here()) {
    ParamGroup<Options> group{params, groups_.at(0).options};
    change(group.options);
    add_param_group(std::move(group), site);
  }

  int64_t num_groups() const override { return static_cast<int64_t>(groups_.size()); }

  const std::vector<ParamGroup<Options>>& groups() const { return groups_; }

 protected:
  double lr_of(int64_t group) const override { return options_at(group).lr; }

  void assign_lr(int64_t group, double lr) override { options_at(group).lr = lr; }

  std::optional<double> momentum_of(int64_t group) const override {
    const Options& options = options_at(group);
    if constexpr (requires { options.betas; }) return options.betas.first;
    if constexpr (requires { options.momentum; }) return options.momentum;
    return std::nullopt;
  }

  void assign_momentum(int64_t group, double momentum) override {
    Options& options = options_at(group);
    if constexpr (requires { options.betas; }) {
      options.betas.first = momentum;
    } else if constexpr (requires { options.momentum; }) {
      options.momentum = momentum;
    } else {
      refuse_momentum();
    }
  }

  void shard_groups() override {
    for (auto& group : groups_) {
      if (!group.options.shard_state) check_no_state();
      group.options.shard_state = true;
    }
  }

  void for_each_param(const std::function<void(const Tensor&, size_t)>& fn) const override {
    size_t number = 0;
    for (const auto& group : groups_) {
      for (const Tensor& parameter : group.params)
        fn(parameter, number++);
    }
  }

  bool shards_state(size_t number) const override { return options_of(number).shard_state; }

  bool wants_master(size_t number) const override {
    if constexpr (requires(Options options) { options.master_weights; }) {
      return options_of(number).master_weights;
    }
    return false;
  }

  int64_t group_of(size_t number) const override { return static_cast<int64_t>(group_of_[number]); }

  const Options& options_of(size_t number) const { return groups_[group_of_[number]].options; }

 private:
  const Options& options_at(int64_t group) const {
    return groups_[static_cast<size_t>(group)].options;
  }

  Options& options_at(int64_t group) { return groups_[static_cast<size_t>(group)].options; }

  std::vector<ParamGroup<Options>> groups_;
  std::vector<size_t> group_of_;  // by parameter number
};

}  // namespace flow::optim
