#include "nn/optim/rmsprop.h"

#include "core/error.h"
#include "ops/optimizer/adaptive_update.h"

namespace flow::optim {

void check_options(const RMSpropOptions& o) {
  if (o.lr < 0 || o.alpha < 0 || o.eps < 0 || o.weight_decay < 0 || o.momentum < 0) {
    throw InvalidArgument(
        str("[RMSprop] lr, alpha, eps, weight_decay and momentum must not be "
            "negative; received ",
            o.lr, ", ", o.alpha, ", ", o.eps, ", ", o.weight_decay, ", ", o.momentum));
  }
}

void RMSprop::update(const Tensor& parameter, const Tensor& grad, size_t number,
                     ParamState& state) {
  const RMSpropOptions& o = options_of(number);
  const Tensor& square_average = buffer(state, 0, parameter);
  rmsprop_update(parameter, grad, square_average,
                 {.lr = o.lr,
                  .alpha = o.alpha,
                  .eps = o.eps,
                  .weight_decay = o.weight_decay,
                  .momentum = o.momentum,
                  .maximize = o.maximize,
                  .grad_avg = o.centered ? buffer(state, 1, parameter) : Tensor(),
                  .momentum_buffer = o.momentum > 0 ? buffer(state, 2, parameter) : Tensor(),
                  .lr_tensor = state.rate(0),
                  .momentum_tensor = state.rate(2)});
}

}  // namespace flow::optim
