#include "nn/optim/radam.h"

#include <cmath>

#include "nn/optim/adam.h"
#include "ops/binary.h"
#include "ops/unary.h"

namespace flow::optim {

void check_options(const RAdamOptions& o) {
  check_adam_options("RAdam", o.lr, o.betas, o.eps, o.weight_decay);
}

void RAdam::update(const Tensor& parameter, const Tensor& grad, size_t number, ParamState& state) {
  const RAdamOptions& o = options_of(number);
  const auto [beta1, beta2] = o.betas;
  const auto step = static_cast<double>(state.step);
  const Tensor g =
      directed_grad(grad, parameter, o.maximize, o.decoupled_weight_decay ? 0 : o.weight_decay);
  if (o.decoupled_weight_decay) parameter.mul_(1 - o.lr * o.weight_decay);
  const Tensor& average = buffer(state, 0, parameter);
  const Tensor& square_average = buffer(state, 1, parameter);
  average.mul_(beta1).add_(g, {.alpha = 1 - beta1});
  square_average.mul_(beta2).add_(square(g), {.alpha = 1 - beta2});
  const double correction1 = 1 - std::pow(beta1, step);
  const double correction2 = 1 - std::pow(beta2, step);
  const double limit = 2 / (1 - beta2) - 1;
  const double length = limit - 2 * step * std::pow(beta2, step) / correction2;
  if (length > 5) {
    const double rectifier =
        std::sqrt((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length));
    parameter.add_(average / (sqrt(square_average) + o.eps),
                   {.alpha = -o.lr * rectifier * std::sqrt(correction2) / correction1});
  } else {
    parameter.add_(average, {.alpha = -o.lr / correction1});
  }
}

}  // namespace flow::optim
