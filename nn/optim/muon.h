// Muon: momentum whose update is made orthogonal, for the matrices of hidden layers (Jordan et al.
// 2024).
#pragma once

#include <array>
#include <string>

#include "nn/optim/optimizer.h"

namespace flow::optim {

struct MuonOptions {
  double lr = 1e-3;
  double weight_decay = 0.1;
  double momentum = 0.95;
  bool nesterov = true;
  std::array<double, 3> ns_coefficients = {3.4445, -4.775, 2.0315};
  double eps = 1e-7;
  int64_t ns_steps = 5;
  // How the rate depends on the (A, B) of a matrix: "original": lr √max(1, A / B),
  // "match_rms_adamw": 0.2 lr √max(A, B) (Liu et al. 2025), "spectral_unclamped": lr √(A / B).
  std::string adjust_lr_fn = "original";
  bool shard_state = false;  // see Optimizer
};

void check_options(const MuonOptions& options);

// m = momentum m + (1 - momentum) g; u = momentum m + (1 - momentum) g with nesterov, else m; O =
// u with its singular values moved towards 1 by ns_steps steps X = a X + (b X Xᵀ + c (X Xᵀ)²) X
// (Newton and Schulz, in bfloat16, from X = u / ‖u‖); p *= 1 - lr weight_decay; p -= adjusted lr O.
// A parameter that is no matrix is InvalidArgument in step(): train it with another optimizer.
class Muon : public GroupedOptimizer<MuonOptions> {
 public:
  using GroupedOptimizer::GroupedOptimizer;

 private:
  void update(const Tensor& parameter, const Tensor& grad, size_t number,
              ParamState& state) override;

  std::vector<std::string> buffer_names() const override { return {"momentum_buffer"}; }
};

}  // namespace flow::optim
