#include "nn/regression_loss.h"

#include "nn/loss_target.h"

namespace flow::nn {

Tensor L1Loss::forward(const Tensor& input, const Tensor& target) {
  return l1_loss(input, move_target_to_input(input, target), options_);
}

Tensor MSELoss::forward(const Tensor& input, const Tensor& target) {
  return mse_loss(input, move_target_to_input(input, target), options_);
}

Tensor SmoothL1Loss::forward(const Tensor& input, const Tensor& target) {
  return smooth_l1_loss(input, move_target_to_input(input, target), options_);
}

Tensor HuberLoss::forward(const Tensor& input, const Tensor& target) {
  return huber_loss(input, move_target_to_input(input, target), options_);
}

Tensor KLDivLoss::forward(const Tensor& input, const Tensor& target) {
  return kl_div(input, move_target_to_input(input, target), options_);
}

Tensor PoissonNLLLoss::forward(const Tensor& input, const Tensor& target) {
  return poisson_nll_loss(input, move_target_to_input(input, target), options_);
}

Tensor GaussianNLLLoss::forward(const Tensor& input, const Tensor& target, const Tensor& var) {
  return gaussian_nll_loss(input, move_target_to_input(input, target),
                           move_target_to_input(input, var), options_);
}

}  // namespace flow::nn
