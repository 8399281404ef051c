// NAdam: Adam with Nesterov's momentum (Dozat 2016).
#pragma once

#include "nn/optim/optimizer.h"

namespace flow::optim {

struct NAdamOptions {
  double lr = 2e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum_decay = 4e-3;
  bool decoupled_weight_decay = false;
  bool maximize = false;
  bool shard_state = false;  // see Optimizer
};

void check_options(const NAdamOptions& options);

// μ_t = beta1 (1 - 0.96^(t momentum_decay) / 2) and Π_t = μ_1 … μ_t; m and v as in Adam, without
// bias correction; d = √(v / (1 - beta2^t)) + eps;
// p -= lr ((1 - μ_t) / (1 - Π_t) g + μ_t+1 / (1 - Π_t μ_t+1) m) / d.
// With decoupled_weight_decay, p *= 1 - lr weight_decay comes first; without it, g += weight_decay
// p.
class NAdam : public GroupedOptimizer<NAdamOptions> {
 public:
  using GroupedOptimizer::GroupedOptimizer;

 private:
  void update(const Tensor& parameter, const Tensor& grad, size_t number,
              ParamState& state) override;

  void advance(size_t number, ParamState& state) const override;
  // Writes grad_rate, average_rate, decay and correction2 of nadam_update.
  void write_rates(size_t number, const ParamState& state, std::span<double> rates) const override;

  size_t num_rates() const override { return 5; }

  double momentum_at(size_t number, int64_t step) const;  // μ_t

  std::vector<std::string> buffer_names() const override { return {"exp_avg", "exp_avg_sq"}; }

  std::vector<std::string> number_names() const override { return {"mu_product"}; }
};

}  // namespace flow::optim
