#include "nn/optim/adadelta.h"

#include "core/error.h"
#include "ops/optimizer/adaptive_update.h"

namespace flow::optim {

void check_options(const AdadeltaOptions& o) {
  if (o.lr < 0 || !(o.rho >= 0 && o.rho <= 1) || o.eps < 0 || o.weight_decay < 0) {
    throw InvalidArgument(
        str("[Adadelta] lr, eps and weight_decay must not be negative and rho "
            "must be in [0, 1]; received ",
            o.lr, ", ", o.eps, ", ", o.weight_decay, ", ", o.rho));
  }
}

void Adadelta::update(const Tensor& parameter, const Tensor& grad, size_t number,
                      ParamState& state) {
  const AdadeltaOptions& o = options_of(number);
  const Tensor& square_average = buffer(state, 0, parameter);
  adadelta_update(parameter, grad, square_average, buffer(state, 1, parameter),
                  {.lr = o.lr,
                   .rho = o.rho,
                   .eps = o.eps,
                   .weight_decay = o.weight_decay,
                   .maximize = o.maximize,
                   .lr_tensor = state.rate(0)});
}

}  // namespace flow::optim
