#include "nn/optim/sgd.h"

#include "core/error.h"
#include "ops/optimizer/update.h"

namespace flow::optim {

void check_options(const SGDOptions& o) {
  if (o.lr < 0 || o.momentum < 0 || o.weight_decay < 0) {
    throw InvalidArgument(str("[SGD] lr, momentum and weight_decay must not be negative; received ",
                              o.lr, ", ", o.momentum, ", ", o.weight_decay));
  }
  if (o.nesterov && (o.momentum <= 0 || o.dampening != 0)) {
    throw InvalidArgument(str("[SGD] nesterov requires momentum > 0 and dampening = 0; received ",
                              o.momentum, " and ", o.dampening));
  }
}

void SGD::update(const Tensor& parameter, const Tensor& grad, size_t number, ParamState& state) {
  const SGDOptions& o = options_of(number);
  // Without dampening, the first step may start from a buffer of zeros.
  const bool is_first = o.dampening != 0 && (state.step == 1 || !state.buffers[0].defined());
  const Tensor momentum_buffer = o.momentum == 0 ? Tensor() : buffer(state, 0, parameter);
  sgd_update(parameter, grad, momentum_buffer,
             {.lr = o.lr,
              .momentum = o.momentum,
              .dampening = o.dampening,
              .weight_decay = o.weight_decay,
              .nesterov = o.nesterov,
              .maximize = o.maximize,
              .is_first = is_first,
              .master = master(state, parameter),
              .lr_tensor = state.rate(0),
              .momentum_tensor = state.rate(2)});
}

}  // namespace flow::optim
