// GradScaler in a compiled step: the scale is an input of each run.
#pragma once

#include <cstddef>
#include <vector>

#include "graph/trace/tracer.h"
#include "nn/optim/grad_scaler.h"

namespace flow::optim {

// The scaler must outlive this object.
class TracedScaler {
 public:
  // The scale and its inverse become inputs of `trace` when they are first needed, one tensor per
  // placement, or per device of local tensors, in the order of inputs().
  TracedScaler(GradScaler& scaler, graph::Trace& trace);

  // The seed of backward at `output`, multiplied by the scale.
  Tensor scaled(const Tensor& output, const Tensor& seed);
  // Divides the traced gradients of the optimizer's parameters by the scale. Returns a bool scalar
  // that is true if all gradients are finite, or an undefined tensor if there is no gradient.
  // Throws what GradScaler::unscale_ throws.
  Tensor unscale(const Optimizer& optimizer);

  // Writes the current scale to the inputs, before a run.
  void begin_run();
  // The values of the inputs that were added.
  std::vector<Tensor> inputs() const;
  // Reports whether all gradients of an optimizer were finite in the run. If they were, the run has
  // stepped the optimizer.
  void found(const Optimizer& optimizer, bool is_finite);

  // Updates the scale after a run.
  void end_run();

 private:
  // The scale and its inverse, for tensors on one placement or local ones on one device.
  struct Input {
    Placement placement;
    Tensor values;
    Tensor traced;
  };

  Tensor number_for(const Tensor& x, int64_t which);

  GradScaler& scaler_;
  graph::Trace* trace_;
  std::vector<Input> inputs_;
};

}  // namespace flow::optim
