// LAMB: layer-wise adaptive rates for large batches (You et al. 2020).
#pragma once

#include "nn/optim/optimizer.h"

namespace flow::optim {

struct LAMBOptions {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool adam_w_mode = true;  // adds the weight decay to the update instead of the gradient
  bool maximize = false;
  bool shard_state = false;  // see Optimizer
};

void check_options(const LAMBOptions& options);

// m̂ and v̂ as in Adam; u = m̂ / (√v̂ + eps) + weight_decay p; p -= lr (‖p‖ / ‖u‖) u, with the
// norms over the whole parameter. If a norm is 0, the factor ‖p‖ / ‖u‖ is 1. Without adam_w_mode, g
// += weight_decay p replaces the term of u.
class LAMB : public GroupedOptimizer<LAMBOptions> {
 public:
  using GroupedOptimizer::GroupedOptimizer;

 private:
  void update(const Tensor& parameter, const Tensor& grad, size_t number,
              ParamState& state) override;

  std::vector<std::string> buffer_names() const override { return {"exp_avg", "exp_avg_sq"}; }
};

}  // namespace flow::optim
