#include "nn/optim/adamw.h"

#include "core/error.h"
#include "ops/creation.h"
#include "ops/update.h"

namespace flow::optim {

AdamW::AdamW(const std::vector<Tensor>& params, const AdamWOptions& options)
    : AdamW(std::vector<ParamGroup<AdamWOptions>>{{params, options}}) {}

AdamW::AdamW(const std::vector<ParamGroup<AdamWOptions>>& groups) : GroupedOptimizer(groups) {
  for (const auto& group : groups) {
    const AdamWOptions& o = group.options;
    const auto is_beta = [](double beta) { return beta >= 0 && beta < 1; };
    if (o.lr < 0 || o.eps < 0 || o.weight_decay < 0 || !is_beta(o.betas.first) ||
        !is_beta(o.betas.second)) {
      throw InvalidArgument(
          str("[AdamW] lr, eps and weight_decay must not be negative and betas "
              "lie in [0, 1); got ",
              o.lr, ", ", o.eps, ", ", o.weight_decay, ", (", o.betas.first, ", ", o.betas.second,
              ")"));
    }
  }
}

void AdamW::update(const Tensor& parameter, const Tensor& grad, size_t number, ParamState& state) {
  const AdamWOptions& o = options_of(number);
  if (state.buffers.empty()) {
    state.buffers.resize(3);
    state.buffers[0] = zeros_like(parameter);
    state.buffers[1] = zeros_like(parameter);
    if (o.amsgrad) state.buffers[2] = zeros_like(parameter);
  }
  adamw_update(parameter, grad, state.buffers[0], state.buffers[1],
               {.lr = o.lr,
                .beta1 = o.betas.first,
                .beta2 = o.betas.second,
                .eps = o.eps,
                .weight_decay = o.weight_decay,
                .maximize = o.maximize,
                .step = state.step,
                .max_exp_avg_sq = state.buffers[2]});
}

}  // namespace flow::optim
