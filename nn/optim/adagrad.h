// Adagrad (Duchi et al. 2011).
#pragma once

#include "nn/optim/optimizer.h"

namespace flow::optim {

struct AdagradOptions {
  double lr = 1e-2;
  double lr_decay = 0;
  double weight_decay = 0;
  double initial_accumulator_value = 0;
  double eps = 1e-10;
  bool maximize = false;
  bool shard_state = false;  // see Optimizer
};

void check_options(const AdagradOptions& options);

// g += weight_decay p; s += g²; p -= lr / (1 + (t - 1) lr_decay) g / (√s + eps).
class Adagrad : public GroupedOptimizer<AdagradOptions> {
 public:
  using GroupedOptimizer::GroupedOptimizer;

 private:
  void update(const Tensor& parameter, const Tensor& grad, size_t number,
              ParamState& state) override;

  std::vector<std::string> buffer_names() const override { return {"sum"}; }
};

}  // namespace flow::optim
