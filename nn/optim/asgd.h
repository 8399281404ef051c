// ASGD: averaged stochastic gradient descent (Polyak and Juditsky 1992), with the step sizes of
// Bottou's implementation.
#pragma once

#include "nn/optim/optimizer.h"

namespace flow::optim {

struct ASGDOptions {
  double lr = 1e-2;
  double lambd = 1e-4;  // decay
  double alpha = 0.75;  // power of the decay of the step size
  double t0 = 1e6;      // the step at which averaging begins
  double weight_decay = 0;
  bool maximize = false;
  bool shard_state = false;  // see Optimizer
};

void check_options(const ASGDOptions& options);

// p = (1 - lambd η) p - η (g + weight_decay p), and the average a += μ (p - a), where η = lr / (1 +
// lambd lr (t - 1))^alpha and μ = 1 / max(1, t - 1 - t0). The averages are the entries "ax" of
// state_dict(); training goes on from p.
class ASGD : public GroupedOptimizer<ASGDOptions> {
 public:
  using GroupedOptimizer::GroupedOptimizer;

 private:
  void update(const Tensor& parameter, const Tensor& grad, size_t number,
              ParamState& state) override;

  std::vector<std::string> buffer_names() const override { return {"ax"}; }

  // eta and mu of the next step, which depend on the learning rate of this one; and of this step.
  std::vector<std::string> number_names() const override {
    return {"eta", "mu", "step_eta", "step_mu"};
  }

  void advance(size_t number, ParamState& state) const override;
  void write_rates(size_t number, const ParamState& state, std::span<double> rates) const override;

  size_t num_rates() const override { return 2; }
};

}  // namespace flow::optim
