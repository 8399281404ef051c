#include "nn/optim/adamax.h"

#include <cmath>

#include "nn/optim/adam.h"
#include "ops/binary.h"
#include "ops/unary.h"

namespace flow::optim {

void check_options(const AdamaxOptions& o) {
  check_adam_options("Adamax", o.lr, o.betas, o.eps, o.weight_decay);
}

void Adamax::update(const Tensor& parameter, const Tensor& grad, size_t number, ParamState& state) {
  const AdamaxOptions& o = options_of(number);
  const auto [beta1, beta2] = o.betas;
  const Tensor g = directed_grad(grad, parameter, o.maximize, o.weight_decay);
  const Tensor& average = buffer(state, 0, parameter);
  const Tensor& largest = buffer(state, 1, parameter);
  average.mul_(beta1).add_(g, {.alpha = 1 - beta1});
  largest.copy_(maximum(largest * beta2, abs(g) + o.eps));
  const double rate = o.lr / (1 - std::pow(beta1, static_cast<double>(state.step)));
  parameter.add_(average / largest, {.alpha = -rate});
}

}  // namespace flow::optim
