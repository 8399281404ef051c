#include "nn/optim/adamax.h"

#include "nn/optim/adam.h"
#include "ops/optimizer/adaptive_update.h"

namespace flow::optim {

void check_options(const AdamaxOptions& o) {
  check_adam_options("Adamax", o.lr, o.betas, o.eps, o.weight_decay);
}

void Adamax::update(const Tensor& parameter, const Tensor& grad, size_t number, ParamState& state) {
  const AdamaxOptions& o = options_of(number);
  const Tensor& average = buffer(state, 0, parameter);
  adamax_update(parameter, grad, average, buffer(state, 1, parameter),
                {.lr = o.lr,
                 .beta1 = o.betas.first,
                 .beta2 = o.betas.second,
                 .eps = o.eps,
                 .weight_decay = o.weight_decay,
                 .maximize = o.maximize,
                 .step = state.step,
                 .lr_tensor = state.rate(0),
                 .step_tensor = state.rate(1),
                 .beta1_tensor = state.rate(2)});
}

}  // namespace flow::optim
