// RMSprop (Tieleman and Hinton 2012).
#pragma once

#include "nn/optim/optimizer.h"

namespace flow::optim {

struct RMSpropOptions {
  double lr = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;
  bool maximize = false;
  bool shard_state = false;  // see Optimizer
};

void check_options(const RMSpropOptions& options);

// g += weight_decay p; v = alpha v + (1 - alpha) g²; d = √v + eps. With `centered`, v - a² takes
// the place of v in d, where a is the moving average of g (Graves 2013). p -= lr g / d; with
// momentum, b = momentum b + g / d and p -= lr b.
class RMSprop : public GroupedOptimizer<RMSpropOptions> {
 public:
  using GroupedOptimizer::GroupedOptimizer;

 private:
  void update(const Tensor& parameter, const Tensor& grad, size_t number,
              ParamState& state) override;

  std::vector<std::string> buffer_names() const override {
    return {"square_avg", "grad_avg", "momentum_buffer"};
  }
};

}  // namespace flow::optim
