#include "nn/optim/adadelta.h"

#include "core/error.h"
#include "ops/binary.h"
#include "ops/unary.h"

namespace flow::optim {

void check_options(const AdadeltaOptions& o) {
  if (o.lr < 0 || !(o.rho >= 0 && o.rho <= 1) || o.eps < 0 || o.weight_decay < 0) {
    throw InvalidArgument(
        str("[Adadelta] lr, eps and weight_decay must not be negative and rho "
            "lies in [0, 1]; got ",
            o.lr, ", ", o.eps, ", ", o.weight_decay, ", ", o.rho));
  }
}

void Adadelta::update(const Tensor& parameter, const Tensor& grad, size_t number,
                      ParamState& state) {
  const AdadeltaOptions& o = options_of(number);
  const Tensor g = directed_grad(grad, parameter, o.maximize, o.weight_decay);
  const Tensor& square_average = buffer(state, 0, parameter);
  const Tensor& change_average = buffer(state, 1, parameter);
  square_average.mul_(o.rho).add_(square(g), {.alpha = 1 - o.rho});
  const Tensor change = sqrt(change_average + o.eps) / sqrt(square_average + o.eps) * g;
  change_average.mul_(o.rho).add_(square(change), {.alpha = 1 - o.rho});
  parameter.add_(change, {.alpha = -o.lr});
}

}  // namespace flow::optim
