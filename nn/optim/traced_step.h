// An optimizer's step in a compiled step. It is traced once; the rates are inputs of each run.
#pragma once

#include <vector>

#include "graph/trace/tracer.h"
#include "nn/optim/optimizer.h"

namespace flow::optim {

// The optimizer must outlive this object. The state is that of the optimizer, so compiled and eager
// steps may alternate.
class TracedStep {
 public:
  // Traces the update of every parameter that has a gradient. The rates become inputs of `trace`,
  // one tensor per placement, in the order of inputs().
  TracedStep(Optimizer& optimizer, graph::Trace& trace);

  // True if the traced step is still the optimizer's step: the same parameters record gradients,
  // the state tensors are the same, the same groups have a momentum, and the same parameters begin
  // with a first step that differs from later ones.
  bool fits() const;

  // False if no parameter had a gradient, as under NoGradGuard.
  bool updates() const { return !parameters_.empty(); }

  // Counts a step of every traced parameter and writes the rates.
  void begin_run();

  // Undoes the counting of begin_run(), because the run skipped the step.
  void take_back();

  // The values of the inputs that the constructor added.
  std::vector<Tensor> inputs() const;

  // True if the step may write this tensor: it is a parameter or belongs to the state.
  bool owns(const Tensor& tensor) const;

 private:
  struct Parameter {
    Tensor tensor;
    size_t number = 0;
    size_t input = 0;         // index of the entry of inputs_ that holds the rates
    size_t first_rate = 0;    // index of the first rate in that entry
    bool is_special = false;  // its update is a first one that differs from later ones
    // It was updated before, without the buffer that begins in its special update. Until a run has
    // made that update, the state has no such buffer.
    bool begins_buffer = false;
    std::vector<Tensor> buffers = {};
    std::vector<double> numbers_before = {};  // before the last begin_run()
  };

  // The rates of the parameters on one placement, or of local parameters on one device.
  struct Input {
    Placement placement;
    DeviceType device = DeviceType::kCpu;
    size_t num_rates = 0;
    Tensor values = {};
    Tensor traced = {};
    std::vector<double> rates = {};  // values that the next begin_run() copies to `values`
  };

  size_t input_for(const Tensor& parameter);
  bool starts_special(const Parameter& parameter) const;
  void trace_update(Parameter& parameter);

  Optimizer& optimizer_;
  std::vector<Parameter> parameters_;
  std::vector<Input> inputs_;
  std::vector<bool> requires_grad_;  // by parameter number
  std::vector<bool> uses_momentum_;  // by group
};

}  // namespace flow::optim
