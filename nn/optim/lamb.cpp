#include "nn/optim/lamb.h"

#include "nn/optim/adam.h"
#include "ops/optimizer/adaptive_update.h"

namespace flow::optim {

void check_options(const LAMBOptions& o) {
  check_adam_options("LAMB", o.lr, o.betas, o.eps, o.weight_decay);
}

void LAMB::update(const Tensor& parameter, const Tensor& grad, size_t number, ParamState& state) {
  const LAMBOptions& o = options_of(number);
  const Tensor& average = buffer(state, 0, parameter);
  lamb_update(parameter, grad, average, buffer(state, 1, parameter),
              {.lr = o.lr,
               .beta1 = o.betas.first,
               .beta2 = o.betas.second,
               .eps = o.eps,
               .weight_decay = o.weight_decay,
               .decoupled_weight_decay = o.adam_w_mode,
               .maximize = o.maximize,
               .step = state.step,
               .lr_tensor = state.rate(0),
               .step_tensor = state.rate(1),
               .beta1_tensor = state.rate(2)});
}

}  // namespace flow::optim
