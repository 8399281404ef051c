#include "nn/optim/nadam.h"

#include <cmath>

#include "core/error.h"
#include "nn/optim/adam.h"
#include "ops/update.h"

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
  const double mu = beta1 * (1 - 0.5 * std::pow(0.96, step * o.momentum_decay));
  const double next_mu = beta1 * (1 - 0.5 * std::pow(0.96, (step + 1) * o.momentum_decay));
  const double product = state.numbers[0] *= mu;
  const Tensor& average = buffer(state, 0, parameter);
  nadam_update(parameter, grad, average, buffer(state, 1, parameter),
               {.grad_rate = o.lr * (1 - mu) / (1 - product),
                .average_rate = o.lr * next_mu / (1 - product * next_mu),
                .beta1 = beta1,
                .beta2 = beta2,
                .eps = o.eps,
                .decay = o.decoupled_weight_decay ? o.lr * o.weight_decay : o.weight_decay,
                .decoupled_weight_decay = o.decoupled_weight_decay,
                .maximize = o.maximize,
                .correction2 = 1 - std::pow(beta2, step)});
}

}  // namespace flow::optim
