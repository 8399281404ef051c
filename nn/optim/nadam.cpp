#include "nn/optim/nadam.h"

#include <array>
#include <cmath>

#include "core/error.h"
#include "nn/optim/adam.h"
#include "ops/optimizer/adaptive_update.h"

namespace flow::optim {

void check_options(const NAdamOptions& o) {
  check_adam_options("NAdam", o.lr, o.betas, o.eps, o.weight_decay);
  if (o.momentum_decay < 0) {
    throw InvalidArgument(
        str("[NAdam] momentum_decay must not be negative; received ", o.momentum_decay));
  }
}

void NAdam::advance(size_t number, ParamState& state) const {
  state.numbers[0] *= momentum_at(number, state.step);
}

double NAdam::momentum_at(size_t number, int64_t step) const {
  const NAdamOptions& o = options_of(number);
  return o.betas.first * (1 - 0.5 * std::pow(0.96, static_cast<double>(step) * o.momentum_decay));
}

void NAdam::write_rates(size_t number, const ParamState& state, std::span<double> rates) const {
  const NAdamOptions& o = options_of(number);
  const double mu = momentum_at(number, state.step), product = state.numbers[0];
  const double next_mu = momentum_at(number, state.step + 1);
  rates[0] = o.lr * (1 - mu) / (1 - product);
  rates[1] = o.lr * next_mu / (1 - product * next_mu);
  rates[2] = o.decoupled_weight_decay ? o.lr * o.weight_decay : o.weight_decay;
  rates[3] = 1 - std::pow(o.betas.second, static_cast<double>(state.step));
  rates[4] = o.betas.first;
}

void NAdam::update(const Tensor& parameter, const Tensor& grad, size_t number, ParamState& state) {
  const NAdamOptions& o = options_of(number);
  std::array<double, 5> now{};
  write_rates(number, state, now);
  const Tensor& average = buffer(state, 0, parameter);
  nadam_update(parameter, grad, average, buffer(state, 1, parameter),
               {.grad_rate = now[0],
                .average_rate = now[1],
                .beta1 = o.betas.first,
                .beta2 = o.betas.second,
                .eps = o.eps,
                .decay = now[2],
                .decoupled_weight_decay = o.decoupled_weight_decay,
                .maximize = o.maximize,
                .correction2 = now[3],
                .grad_rate_tensor = state.rate(0),
                .average_rate_tensor = state.rate(1),
                .decay_tensor = state.rate(2),
                .correction2_tensor = state.rate(3),
                .beta1_tensor = state.rate(4)});
}

}  // namespace flow::optim
