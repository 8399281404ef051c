#include "nn/optim/nadam.h"

#include <cmath>

#include "core/error.h"
#include "nn/optim/adam.h"
#include "ops/binary.h"
#include "ops/unary.h"

namespace flow::optim {

void check_options(const NAdamOptions& o) {
  check_adam_options("NAdam", o.lr, o.betas, o.eps, o.weight_decay);
  if (o.momentum_decay < 0) {
    throw InvalidArgument(
        str("[NAdam] momentum_decay must not be negative; got ", o.momentum_decay));
  }
}

void NAdam::update(const Tensor& parameter, const Tensor& grad, size_t number, ParamState& state) {
  const NAdamOptions& o = options_of(number);
  const auto [beta1, beta2] = o.betas;
  const auto step = static_cast<double>(state.step);
  const Tensor g =
      directed_grad(grad, parameter, o.maximize, o.decoupled_weight_decay ? 0 : o.weight_decay);
  if (o.decoupled_weight_decay) parameter.mul_(1 - o.lr * o.weight_decay);
  const double mu = beta1 * (1 - 0.5 * std::pow(0.96, step * o.momentum_decay));
  const double next_mu = beta1 * (1 - 0.5 * std::pow(0.96, (step + 1) * o.momentum_decay));
  const double product = state.numbers[0] *= mu;
  const Tensor& average = buffer(state, 0, parameter);
  const Tensor& square_average = buffer(state, 1, parameter);
  average.mul_(beta1).add_(g, {.alpha = 1 - beta1});
  square_average.mul_(beta2).add_(square(g), {.alpha = 1 - beta2});
  const Tensor denominator = sqrt(square_average / (1 - std::pow(beta2, step))) + o.eps;
  parameter.add_(g / denominator, {.alpha = -o.lr * (1 - mu) / (1 - product)});
  parameter.add_(average / denominator, {.alpha = -o.lr * next_mu / (1 - product * next_mu)});
}

}  // namespace flow::optim
