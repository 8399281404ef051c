// Adadelta (Zeiler 2012).
#pragma once

#include "nn/optim/optimizer.h"

namespace flow::optim {

struct AdadeltaOptions {
  double lr = 1;
  double rho = 0.9;
  double eps = 1e-6;
  double weight_decay = 0;
  bool maximize = false;
  bool shard_state = false;  // see Optimizer
};

void check_options(const AdadeltaOptions& options);

// g += weight_decay p; v = rho v + (1 - rho) g²; d = √(a + eps) / √(v + eps) g;
// a = rho a + (1 - rho) d²; p -= lr d.
class Adadelta : public GroupedOptimizer<AdadeltaOptions> {
 public:
  using GroupedOptimizer::GroupedOptimizer;

 private:
  void update(const Tensor& parameter, const Tensor& grad, size_t number,
              ParamState& state) override;

  std::vector<std::string> buffer_names() const override { return {"square_avg", "acc_delta"}; }
};

}  // namespace flow::optim
