#include "nn/optim/lamb.h"

#include <cmath>

#include "nn/optim/adam.h"
#include "ops/binary.h"
#include "ops/compare.h"
#include "ops/statistics.h"
#include "ops/unary.h"
#include "ops/where.h"

namespace flow::optim {

void check_options(const LAMBOptions& o) {
  check_adam_options("LAMB", o.lr, o.betas, o.eps, o.weight_decay);
}

void LAMB::update(const Tensor& parameter, const Tensor& grad, size_t number, ParamState& state) {
  const LAMBOptions& o = options_of(number);
  const auto [beta1, beta2] = o.betas;
  const auto step = static_cast<double>(state.step);
  const Tensor g = directed_grad(grad, parameter, o.maximize, o.adam_w_mode ? 0 : o.weight_decay);
  const Tensor& average = buffer(state, 0, parameter);
  const Tensor& square_average = buffer(state, 1, parameter);
  average.mul_(beta1).add_(g, {.alpha = 1 - beta1});
  square_average.mul_(beta2).add_(square(g), {.alpha = 1 - beta2});
  const Tensor denominator = sqrt(square_average) / std::sqrt(1 - std::pow(beta2, step)) + o.eps;
  Tensor change = average / (1 - std::pow(beta1, step)) / denominator;
  if (o.adam_w_mode) change = add(change, parameter, {.alpha = o.weight_decay});
  const Tensor parameter_norm = norm(parameter), change_norm = norm(change);
  const Tensor has_ratio = logical_and(gt(parameter_norm, 0), gt(change_norm, 0));
  const Tensor ratio = where(has_ratio, parameter_norm / change_norm, 1);
  parameter.add_(change * ratio, {.alpha = -o.lr});
}

}  // namespace flow::optim
