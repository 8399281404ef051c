#include "nn/optim/traced_step.h"

#include <algorithm>

#include "autograd/autocast.h"
#include "core/context.h"
#include "core/device/device_memory.h"
#include "core/grad_mode.h"
#include "nn/optim/update_phase.h"
#include "ops/creation/creation.h"
#include "ops/shape/slice.h"

namespace flow::optim {

namespace {
// Whether the groups have momentum. Without it, some rules keep no buffer for it; its value is a
// rate.
std::vector<bool> uses_of_momentum(const Optimizer& optimizer) {
  std::vector<bool> uses;
  for (int64_t group = 0; group < optimizer.num_groups(); ++group)
    uses.push_back(optimizer.momentum(group).value_or(0) != 0);
  return uses;
}
}  // namespace

TracedStep::TracedStep(Optimizer& optimizer, graph::Trace& trace)
    : optimizer_(optimizer), uses_momentum_(uses_of_momentum(optimizer)) {
  const NoGradGuard no_grad;
  const UpdatePhase phase;
  autograd::drop_cached_casts();
  optimizer.lay_out_state();
  optimizer.for_each_param([&](const Tensor& tensor, size_t number) {
    requires_grad_.push_back(tensor.requires_grad());
    if (!tensor.grad().defined()) return;
    Parameter parameter{.tensor = tensor, .number = number};
    --optimizer.begin_step(number).step;  // counted when it runs
    parameter.input = input_for(tensor);
    Input& input = inputs_[parameter.input];
    parameter.first_rate = input.num_rates;
    input.num_rates += optimizer.num_rates();
    parameter.is_special = starts_special(parameter);
    parameter.begins_buffer = parameter.is_special && optimizer.states_[number].step > 0;
    parameters_.push_back(std::move(parameter));
  });
  for (Input& input : inputs_) {
    const graph::SuspendTracing at_once;
    TensorOptions options{.dtype = float64, .placement = input.placement};
    if (!input.placement.defined()) {
      // Where the kernels read them; elsewhere each update would copy its own.
      options.device = std::string(device_type_name(input.device));
    } else {
      options.sbp =
          NdSbp(std::vector<Sbp>(static_cast<size_t>(input.placement.num_axes()), sbp::broadcast));
    }
    input.values = zeros({static_cast<int64_t>(input.num_rates)}, options);
    input.traced = trace.add_input(input.values);
  }
  for (Parameter& parameter : parameters_)
    trace_update(parameter);
  for (Input& input : inputs_)
    input.traced = Tensor();
}

void TracedStep::trace_update(Parameter& parameter) {
  struct Restore {
    Optimizer::ParamState& state;

    ~Restore() {
      --state.step;
      state.traced_rates.clear();
    }
  };

  Optimizer::ParamState& state = optimizer_.states_[parameter.number];
  ++state.step;  // update rules test for the first step
  const Restore restore{state};
  const Tensor& all = inputs_[parameter.input].traced;
  for (size_t i = 0; i < optimizer_.num_rates(); ++i) {
    state.traced_rates.push_back(select(all, 0, static_cast<int64_t>(parameter.first_rate + i)));
  }
  optimizer_.apply(parameter.tensor, parameter.tensor.grad(), parameter.number, state);
  parameter.buffers = state.buffers;
  if (parameter.begins_buffer) state.buffers[0] = Tensor();
}

size_t TracedStep::input_for(const Tensor& parameter) {
  const Placement placement = parameter.is_global() ? parameter.placement() : Placement();
  const DeviceType device = parameter.device();
  const auto found = std::find_if(inputs_.begin(), inputs_.end(), [&](const Input& input) {
    return input.placement == placement && input.device == device;
  });
  if (found != inputs_.end()) return static_cast<size_t>(found - inputs_.begin());
  inputs_.push_back({.placement = placement, .device = device});
  return inputs_.size() - 1;
}

// A buffer that the rule has not needed so far begins at this step.
bool TracedStep::starts_special(const Parameter& parameter) const {
  const Optimizer::ParamState& state = optimizer_.states_[parameter.number];
  return optimizer_.has_special_first_step(parameter.number) &&
         (state.step == 0 || !state.buffers[0].defined());
}

bool TracedStep::fits() const {
  bool same = uses_of_momentum(optimizer_) == uses_momentum_;
  optimizer_.for_each_param([&](const Tensor& tensor, size_t number) {
    same &= number < requires_grad_.size() && requires_grad_[number] == tensor.requires_grad();
  });
  for (const Parameter& parameter : parameters_) {
    if (!same) return false;
    const std::vector<Tensor>& buffers = optimizer_.states_[parameter.number].buffers;
    same = std::equal(buffers.begin(), buffers.end(), parameter.buffers.begin(),
                      parameter.buffers.end(),
                      [&](const Tensor& a, const Tensor& b) {
                        return a.is_same(b) || (parameter.begins_buffer && !a.defined());
                      }) &&
           starts_special(parameter) == parameter.is_special;
  }
  return same;
}

void TracedStep::begin_run() {
  for (Parameter& parameter : parameters_) {
    Optimizer::ParamState& state = optimizer_.begin_step(parameter.number);
    parameter.numbers_before = state.numbers;
    if (parameter.begins_buffer) state.buffers[0] = parameter.buffers[0];
    optimizer_.advance(parameter.number, state);
    std::vector<double>& rates = inputs_[parameter.input].rates;
    rates.resize(inputs_[parameter.input].num_rates);
    optimizer_.write_rates(parameter.number, state,
                           {rates.data() + parameter.first_rate, optimizer_.num_rates()});
  }
  for (const Input& input : inputs_) {
    const TensorMeta& meta = input.values.meta();
    if (!meta.is_held) continue;
    copy_bytes(*thread_state().context, input.values.impl().data(), meta.device, input.rates.data(),
               DeviceType::kCpu, meta.local_bytes());
  }
}

void TracedStep::take_back() {
  for (const Parameter& parameter : parameters_) {
    Optimizer::ParamState& state = optimizer_.states_[parameter.number];
    --state.step;
    state.numbers = parameter.numbers_before;
    if (parameter.begins_buffer) state.buffers[0] = Tensor();
  }
}

std::vector<Tensor> TracedStep::inputs() const {
  std::vector<Tensor> values;
  for (const Input& input : inputs_)
    values.push_back(input.values);
  return values;
}

bool TracedStep::owns(const Tensor& tensor) const {
  return std::any_of(parameters_.begin(), parameters_.end(), [&](const Parameter& parameter) {
    return parameter.tensor.is_same(tensor) ||
           std::any_of(parameter.buffers.begin(), parameter.buffers.end(),
                       [&](const Tensor& b) { return b.defined() && b.is_same(tensor); });
  });
}

}  // namespace flow::optim
