// Rprop: steps whose sizes depend on the signs of gradients only (Riedmiller and Braun 1993).
#pragma once

#include "nn/optim/optimizer.h"

namespace flow::optim {

struct RpropOptions {
  double lr = 1e-2;                                   // the first step size of every element
  std::pair<double, double> etas = {0.5, 1.2};        // factors of the step size
  std::pair<double, double> step_sizes = {1e-6, 50};  // its least and greatest value
  bool maximize = false;
  bool shard_state = false;  // see Optimizer
};

void check_options(const RpropOptions& options);

// Each element has a step size s, initially lr. Where g g' > 0, with g' the gradient of the step
// before, s *= etas.second; where g g' < 0, s *= etas.first and g = 0; then s is clamped, and p -=
// s sign(g). For batches that contain all data: a sign that changes with the batch makes s small.
class Rprop : public GroupedOptimizer<RpropOptions> {
 public:
  using GroupedOptimizer::GroupedOptimizer;

 private:
  void update(const Tensor& parameter, const Tensor& grad, size_t number,
              ParamState& state) override;

  std::vector<std::string> buffer_names() const override { return {"prev", "step_size"}; }
};

}  // namespace flow::optim
