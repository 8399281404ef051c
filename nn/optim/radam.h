// RAdam: Adam with a rectified variance (Liu et al. 2020).
#pragma once

#include "nn/optim/optimizer.h"

namespace flow::optim {

struct RAdamOptions {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool decoupled_weight_decay = false;
  bool maximize = false;
  bool shard_state = false;  // see Optimizer
};

void check_options(const RAdamOptions& options);

// m and v as in Adam; ρ∞ = 2 / (1 - beta2) - 1; ρ = ρ∞ - 2 t beta2^t / (1 - beta2^t). While ρ <= 5,
// p -= lr m̂; later p -= lr m̂ r √(1 - beta2^t) / (√v + eps) with r² = (ρ - 4)(ρ - 2) ρ∞ / ((ρ∞ -
// 4)(ρ∞ - 2) ρ). With decoupled_weight_decay, p *= 1 - lr weight_decay comes first; without it, g
// += weight_decay p.
class RAdam : public GroupedOptimizer<RAdamOptions> {
 public:
  using GroupedOptimizer::GroupedOptimizer;

 private:
  void update(const Tensor& parameter, const Tensor& grad, size_t number,
              ParamState& state) override;

  std::vector<std::string> buffer_names() const override { return {"exp_avg", "exp_avg_sq"}; }
};

}  // namespace flow::optim
