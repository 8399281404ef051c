#include "nn/optim/rmsprop.h"

#include "core/error.h"
#include "ops/binary.h"
#include "ops/unary.h"

namespace flow::optim {

void check_options(const RMSpropOptions& o) {
  if (o.lr < 0 || o.alpha < 0 || o.eps < 0 || o.weight_decay < 0 || o.momentum < 0) {
    throw InvalidArgument(
        str("[RMSprop] lr, alpha, eps, weight_decay and momentum must not be "
            "negative; got ",
            o.lr, ", ", o.alpha, ", ", o.eps, ", ", o.weight_decay, ", ", o.momentum));
  }
}

void RMSprop::update(const Tensor& parameter, const Tensor& grad, size_t number,
                     ParamState& state) {
  const RMSpropOptions& o = options_of(number);
  const Tensor g = directed_grad(grad, parameter, o.maximize, o.weight_decay);
  const Tensor& square_average = buffer(state, 0, parameter);
  square_average.mul_(o.alpha).add_(square(g), {.alpha = 1 - o.alpha});
  Tensor variance = square_average;
  if (o.centered) {
    const Tensor& average = buffer(state, 1, parameter);
    average.mul_(o.alpha).add_(g, {.alpha = 1 - o.alpha});
    variance = square_average - square(average);
  }
  const Tensor change = g / (sqrt(variance) + o.eps);
  if (o.momentum > 0) {
    const Tensor& momentum_buffer = buffer(state, 2, parameter);
    momentum_buffer.mul_(o.momentum).add_(change);
    parameter.add_(momentum_buffer, {.alpha = -o.lr});
  } else {
    parameter.add_(change, {.alpha = -o.lr});
  }
}

}  // namespace flow::optim
