#include "nn/optim/adamw.h"

#include "nn/optim/adam.h"
#include "ops/optimizer/update.h"

namespace flow::optim {

void check_options(const AdamWOptions& o) {
  check_adam_options("AdamW", o.lr, o.betas, o.eps, o.weight_decay);
}

void AdamW::update(const Tensor& parameter, const Tensor& grad, size_t number, ParamState& state) {
  const AdamWOptions& o = options_of(number);
  const Tensor& average = buffer(state, 0, parameter);
  const Tensor& square = buffer(state, 1, parameter);
  if (o.amsgrad) buffer(state, 2, parameter);
  adamw_update(parameter, grad, average, square,
               {.lr = o.lr,
                .beta1 = o.betas.first,
                .beta2 = o.betas.second,
                .eps = o.eps,
                .weight_decay = o.weight_decay,
                .maximize = o.maximize,
                .step = state.step,
                .max_exp_avg_sq = state.buffers[2],
                .master = master(state, parameter),
                .lr_tensor = state.rate(0),
                .step_tensor = state.rate(1),
                .beta1_tensor = state.rate(2)});
}

}  // namespace flow::optim
