// An optimizer's step within a compiled one: traced once, its rates given anew to every run.
#pragma once

#include <optional>
#include <vector>

#include "graph/trace/tracer.h"
#include "nn/optim/optimizer.h"

namespace flow::optim {

// The optimizer must outlive it. State is the optimizer's own, so that compiled and eager steps may
// follow each other.
class TracedStep {
 public:
  // Traces the update of every parameter that has a gradient now. The rates become inputs of
  // `trace`, one tensor a placement, in the order of inputs().
  TracedStep(Optimizer& optimizer, graph::Trace& trace);

  // Whether what was traced is still the optimizer's step: the same parameters, state tensors and
  // constants.
  bool fits() const;

  // Counts a step of every traced parameter and writes the rates.
  void begin_run();

  // Takes back what begin_run() counted: the run has left the step out.
  void take_back();

  // Values of the inputs that the constructor added.
  std::vector<Tensor> inputs() const;

  // Whether it is a tensor that the step may write: a parameter or state.
  bool owns(const Tensor& tensor) const;

 private:
  struct Parameter {
    Tensor tensor;
    size_t number = 0;
    size_t input = 0;  // which of inputs_ holds its rates, from where on
    size_t first_rate = 0;
    std::vector<Tensor> buffers = {};
    std::vector<double> numbers_before = {};  // of the run
  };

  // Rates of the parameters that lie on one placement.
  struct Input {
    Placement placement;
    size_t num_rates = 0;
    Tensor values = {};
    Tensor traced = {};
    std::vector<double> rates = {};  // what the next run writes to `values`
  };

  size_t input_for(const Tensor& parameter);
  bool starts_special(const Parameter& parameter) const;
  void trace_update(Parameter& parameter);

  Optimizer& optimizer_;
  std::vector<Parameter> parameters_;
  std::vector<Input> inputs_;
  std::vector<bool> requires_grad_;             // by parameter number
  std::vector<std::optional<double>> momenta_;  // by group
  bool is_special_ = false;
};

}  // namespace flow::optim
