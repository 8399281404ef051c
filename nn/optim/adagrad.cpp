#include "nn/optim/adagrad.h"

#include "core/error.h"
#include "ops/optimizer/adaptive_update.h"

namespace flow::optim {

void check_options(const AdagradOptions& o) {
  if (o.lr < 0 || o.lr_decay < 0 || o.weight_decay < 0 || o.initial_accumulator_value < 0 ||
      o.eps < 0) {
    throw InvalidArgument(
        str("[Adagrad] lr, lr_decay, weight_decay, initial_accumulator_value and "
            "eps must not be negative; received ",
            o.lr, ", ", o.lr_decay, ", ", o.weight_decay, ", ", o.initial_accumulator_value, ", ",
            o.eps));
  }
}

void Adagrad::update(const Tensor& parameter, const Tensor& grad, size_t number,
                     ParamState& state) {
  const AdagradOptions& o = options_of(number);
  adagrad_update(parameter, grad, buffer(state, 0, parameter, o.initial_accumulator_value),
                 {.lr = o.lr,
                  .lr_decay = o.lr_decay,
                  .eps = o.eps,
                  .weight_decay = o.weight_decay,
                  .maximize = o.maximize,
                  .step = state.step,
                  .lr_tensor = state.rate(0),
                  .step_tensor = state.rate(1)});
}

}  // namespace flow::optim
