#include "nn/optim/adagrad.h"

#include "core/error.h"
#include "ops/binary.h"
#include "ops/unary.h"

namespace flow::optim {

void check_options(const AdagradOptions& o) {
  if (o.lr < 0 || o.lr_decay < 0 || o.weight_decay < 0 || o.initial_accumulator_value < 0 ||
      o.eps < 0) {
    throw InvalidArgument(
        str("[Adagrad] lr, lr_decay, weight_decay, initial_accumulator_value and "
            "eps must not be negative; got ",
            o.lr, ", ", o.lr_decay, ", ", o.weight_decay, ", ", o.initial_accumulator_value, ", ",
            o.eps));
  }
}

void Adagrad::update(const Tensor& parameter, const Tensor& grad, size_t number,
                     ParamState& state) {
  const AdagradOptions& o = options_of(number);
  const Tensor g = directed_grad(grad, parameter, o.maximize, o.weight_decay);
  const Tensor& sum = buffer(state, 0, parameter, o.initial_accumulator_value);
  sum.add_(square(g));
  const double rate = o.lr / (1 + static_cast<double>(state.step - 1) * o.lr_decay);
  parameter.add_(g / (sqrt(sum) + o.eps), {.alpha = -rate});
}

}  // namespace flow::optim
