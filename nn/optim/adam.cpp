#include "nn/optim/adam.h"

#include "core/error.h"
#include "ops/optimizer/update.h"

namespace flow::optim {

void check_adam_options(const char* rule, double lr, std::pair<double, double> betas, double eps,
                        double weight_decay) {
  const auto is_beta = [](double beta) { return beta >= 0 && beta < 1; };
  if (lr >= 0 && eps >= 0 && weight_decay >= 0 && is_beta(betas.first) && is_beta(betas.second)) {
    return;
  }
  throw InvalidArgument(str("[", rule,
                            "] lr, eps and weight_decay must not be negative and betas must be in "
                            "[0, 1); received ",
                            lr, ", ", eps, ", ", weight_decay, ", (", betas.first, ", ",
                            betas.second, ")"));
}

void check_options(const AdamOptions& o) {
  check_adam_options("Adam", o.lr, o.betas, o.eps, o.weight_decay);
}

void Adam::update(const Tensor& parameter, const Tensor& grad, size_t number, ParamState& state) {
  const AdamOptions& o = options_of(number);
  const Tensor& average = buffer(state, 0, parameter);
  const Tensor& square = buffer(state, 1, parameter);
  if (o.amsgrad) buffer(state, 2, parameter);
  const AdamUpdateOptions options{.lr = o.lr,
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
                                  .beta1_tensor = state.rate(2)};
  const auto update_fn = o.decoupled_weight_decay ? adamw_update : adam_update;
  update_fn(parameter, grad, average, square, options);
}

}  // namespace flow::optim
