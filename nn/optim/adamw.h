// AdamW: Adam with decoupled weight decay (Loshchilov and Hutter 2019).
#pragma once

#include "nn/optim/optimizer.h"

namespace flow::optim {

struct AdamWOptions {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false;
  bool maximize = false;
  bool shard_state = false;     // see Optimizer
  bool master_weights = false;  // see Optimizer
};

void check_options(const AdamWOptions& options);

// p *= 1 - lr weight_decay; m and v are the moving averages of g and g², m̂ and v̂ the
// bias-corrected ones; p -= lr m̂ / (√v̂ + eps). With amsgrad the running maximum of v takes the
// place of v (Reddi et al. 2018).
class AdamW : public GroupedOptimizer<AdamWOptions> {
 public:
  using GroupedOptimizer::GroupedOptimizer;

 private:
  void update(const Tensor& parameter, const Tensor& grad, size_t number,
              ParamState& state) override;

  std::vector<std::string> buffer_names() const override {
    return {"exp_avg", "exp_avg_sq", "max_exp_avg_sq", "master"};
  }
};

}  // namespace flow::optim
