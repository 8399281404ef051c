// A GradScaler's part in a compiled step: the scale is given anew to every run.
#pragma once

#include <cstddef>
#include <vector>

#include "graph/trace/tracer.h"
#include "nn/optim/grad_scaler.h"

namespace flow::optim {

// The scaler must outlive it.
class TracedScaler {
 public:
  // Numbers become inputs of `trace` as they are needed, one tensor a placement, in the order of
  // inputs().
  TracedScaler(GradScaler& scaler, graph::Trace& trace);

  // What backward begins with at `output`, times the scale.
  Tensor scaled(const Tensor& output, const Tensor& seed);
  // Divides the traced gradients of the optimizer's parameters by the scale. Gives a bool scalar:
  // whether all are finite; undefined where there is none. Throws what GradScaler::unscale_ throws.
  Tensor unscale(const Optimizer& optimizer);

  // Writes the scale that a run has.
  void begin_run();
  // Values of the inputs that were added.
  std::vector<Tensor> inputs() const;
  // What a run has found of an optimizer's gradients, which it has or has not stepped on.
  void found(const Optimizer& optimizer, bool is_finite);

  // Ends a run: grows or shrinks the scale.
  void end_run();

 private:
  // Scale and its inverse for tensors of one placement.
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
