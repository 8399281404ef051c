#include "nn/optim/sgd.h"

#include "core/error.h"
#include "ops/creation.h"
#include "ops/update.h"

namespace flow::optim {

SGD::SGD(const std::vector<Tensor>& params, const SGDOptions& options)
    : SGD(std::vector<ParamGroup<SGDOptions>>{{params, options}}) {}

SGD::SGD(const std::vector<ParamGroup<SGDOptions>>& groups) : GroupedOptimizer(groups) {
  for (const auto& group : groups) {
    const SGDOptions& o = group.options;
    if (o.lr < 0 || o.momentum < 0 || o.weight_decay < 0) {
      throw InvalidArgument(str("[SGD] lr, momentum and weight_decay must not be negative; got ",
                                o.lr, ", ", o.momentum, ", ", o.weight_decay));
    }
    if (o.nesterov && (o.momentum <= 0 || o.dampening != 0)) {
      throw InvalidArgument(str("[SGD] nesterov needs a momentum and no dampening; got ",
                                o.momentum, " and ", o.dampening));
    }
  }
}

void SGD::update(const Tensor& parameter, const Tensor& grad, size_t number, ParamState& state) {
  const SGDOptions& o = options_of(number);
  Tensor buffer;
  bool is_first = false;
  if (o.momentum != 0) {
    state.buffers.resize(1);
    is_first = !state.buffers[0].defined();
    if (is_first) state.buffers[0] = zeros_like(parameter);
    buffer = state.buffers[0];
  }
  sgd_update(parameter, grad, buffer,
             {.lr = o.lr,
              .momentum = o.momentum,
              .dampening = o.dampening,
              .weight_decay = o.weight_decay,
              .nesterov = o.nesterov,
              .maximize = o.maximize,
              .is_first = is_first});
}

}  // namespace flow::optim
