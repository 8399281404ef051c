// Stochastic gradient descent with momentum.
#pragma once

#include "nn/optim/optimizer.h"

namespace flow::optim {

struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;  // requires momentum > 0 and dampening = 0
  bool maximize = false;
  bool shard_state = false;     // see Optimizer
  bool master_weights = false;  // see Optimizer
};

void check_options(const SGDOptions& options);

// g += weight_decay p; buf = momentum buf + (1 - dampening) g, and buf = g in the first step; p -=
// lr (g + momentum buf) with nesterov, else p -= lr buf. This is PyTorch's form; in Sutskever's the
// rate is inside buf.
class SGD : public GroupedOptimizer<SGDOptions> {
 public:
  using GroupedOptimizer::GroupedOptimizer;

 private:
  void update(const Tensor& parameter, const Tensor& grad, size_t number,
              ParamState& state) override;

  std::vector<std::string> buffer_names() const override { return {"momentum_buffer", "master"}; }

  bool always_has_buffer() const override { return false; }

  bool has_special_first_step(size_t number) const override {
    return options_of(number).momentum != 0 && options_of(number).dampening != 0;
  }
};

}  // namespace flow::optim
