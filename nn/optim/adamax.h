// Adamax: Adam with the infinity norm (Kingma and Ba 2015).
#pragma once

#include "nn/optim/optimizer.h"

namespace flow::optim {

struct AdamaxOptions {
  double lr = 2e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool maximize = false;
  bool shard_state = false;  // see Optimizer
};

void check_options(const AdamaxOptions& options);

// g += weight_decay p; m is the moving average of g; u = max(beta2 u, |g| + eps);
// p -= lr / (1 - beta1^t) m / u.
class Adamax : public GroupedOptimizer<AdamaxOptions> {
 public:
  using GroupedOptimizer::GroupedOptimizer;

 private:
  void update(const Tensor& parameter, const Tensor& grad, size_t number,
              ParamState& state) override;

  std::vector<std::string> buffer_names() const override { return {"exp_avg", "exp_inf"}; }
};

}  // namespace flow::optim
