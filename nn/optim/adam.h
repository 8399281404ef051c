// Adam (Kingma and Ba 2015), with AMSGrad (Reddi et al. 2018).
#pragma once

#include "nn/optim/optimizer.h"

namespace flow::optim {

struct AdamOptions {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false;
  bool maximize = false;
  bool decoupled_weight_decay = false;  // decay the weights as AdamW does
  bool shard_state = false;             // see Optimizer
  bool master_weights = false;          // see Optimizer
};

void check_options(const AdamOptions& options);

// g += weight_decay p; m and v are the moving averages of g and g², m̂ and v̂ the bias-corrected
// ones; p -= lr m̂ / (√v̂ + eps). With amsgrad the running maximum of v takes the place of v.
class Adam : public GroupedOptimizer<AdamOptions> {
 public:
  using GroupedOptimizer::GroupedOptimizer;

 private:
  void update(const Tensor& parameter, const Tensor& grad, size_t number,
              ParamState& state) override;

  std::vector<std::string> buffer_names() const override {
    return {"exp_avg", "exp_avg_sq", "max_exp_avg_sq", "master"};
  }
};

// Throws InvalidArgument, naming `rule`, unless lr, eps and weight_decay are >= 0 and both betas
// are in [0, 1).
void check_adam_options(const char* rule, double lr, std::pair<double, double> betas, double eps,
                        double weight_decay);

}  // namespace flow::optim
