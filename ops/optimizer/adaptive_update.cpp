#include "ops/optimizer/adaptive_update.h"

#include <cmath>

#include "core/dispatch.h"
#include "ops/creation/copy.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/cast.h"
#include "ops/optimizer/update_op.h"
#include "ops/optimizer/update_row.h"
#include "ops/reduce/statistics.h"

namespace flow {

namespace ops {

const OpDef kAdamaxUpdate = update_row<kAdamaxTensors, AdamAttrs>("adamax_update", 3, 0b1101);
const OpDef kRAdamUpdate = update_row<kRAdamTensors, AdamAttrs>("radam_update", 3, 0b1101);
const OpDef kNAdamUpdate = update_row<kNAdamTensors, NAdamAttrs>("nadam_update", 5, 0b1101);
const OpDef kRMSpropUpdate =
    update_row<rmsprop_tensors(false, false), RMSpropAttrs>("rmsprop_update", 1, 0b101);
const OpDef kRMSpropCenteredUpdate =
    update_row<rmsprop_tensors(true, false), RMSpropAttrs>("rmsprop_centered_update", 1, 0b1101);
const OpDef kRMSpropMomentumUpdate =
    update_row<rmsprop_tensors(false, true), RMSpropAttrs>("rmsprop_momentum_update", 2, 0b1101);
const OpDef kRMSpropCenteredMomentumUpdate = update_row<rmsprop_tensors(true, true), RMSpropAttrs>(
    "rmsprop_centered_momentum_update", 2, 0b11101);
const OpDef kAdagradUpdate = update_row<kAdagradTensors, AdagradAttrs>("adagrad_update", 2, 0b101);
const OpDef kAdadeltaUpdate =
    update_row<kAdadeltaTensors, AdadeltaAttrs>("adadelta_update", 1, 0b1101);
const OpDef kLambDirection =
    update_row<kLambDirectionTensors, AdamAttrs>("lamb_direction", 2, 0b11100);
const OpDef kLambUpdate = update_row<kLambTensors, AdamAttrs>("lamb_update", 3, 0b01);

void register_adaptive_update(OpTable& table) {
  for (const OpDef* op :
       {&kAdamaxUpdate, &kRAdamUpdate, &kNAdamUpdate, &kRMSpropUpdate, &kRMSpropCenteredUpdate,
        &kRMSpropMomentumUpdate, &kRMSpropCenteredMomentumUpdate, &kAdagradUpdate, &kAdadeltaUpdate,
        &kLambDirection, &kLambUpdate}) {
    table.add(*op);
  }
}

}  // namespace ops

namespace {

// Runs a step whose results are its inputs.
template <class Attrs>
void run(const OpDef& op, std::initializer_list<const Tensor*> inputs, const Attrs& attrs,
         Site site) {
  std::array<Tensor, 4> written;
  Call call{op, {inputs.begin(), inputs.size()}, &attrs, site};
  dispatch(call, written.data());
}

template <class Options>
ops::AdamAttrs adam_attrs(const Options& options) {
  ops::AdamAttrs attrs{.lr = options.lr,
                       .beta1 = options.beta1,
                       .beta2 = options.beta2,
                       .eps = options.eps,
                       .weight_decay = options.weight_decay,
                       .maximize = options.maximize,
                       .step = options.step};
  if constexpr (requires { options.decoupled_weight_decay; }) {
    attrs.is_decoupled = options.decoupled_weight_decay;
  }
  return attrs;
}

// The norm as a number in the form that update kernels take.
Tensor norm_of(const Tensor& x, Site site) {
  const Tensor length = norm({x, site});
  return is_half(x.dtype()) ? cast({length, site}, float32) : length;
}

}  // namespace

void adamax_update(const TensorArg& param, const TensorArg& grad, const TensorArg& exp_avg,
                   const TensorArg& exp_inf, const AdamaxUpdateOptions& options) {
  run(ops::kAdamaxUpdate,
      {&param.tensor(), &grad.tensor(), &exp_avg.tensor(), &exp_inf.tensor(), &options.lr_tensor,
       &options.step_tensor, &options.beta1_tensor},
      adam_attrs(options), param.site());
}

void radam_update(const TensorArg& param, const TensorArg& grad, const TensorArg& exp_avg,
                  const TensorArg& exp_avg_sq, const RAdamUpdateOptions& options) {
  run(ops::kRAdamUpdate,
      {&param.tensor(), &grad.tensor(), &exp_avg.tensor(), &exp_avg_sq.tensor(), &options.lr_tensor,
       &options.step_tensor, &options.beta1_tensor},
      adam_attrs(options), param.site());
}

void nadam_update(const TensorArg& param, const TensorArg& grad, const TensorArg& exp_avg,
                  const TensorArg& exp_avg_sq, const NAdamUpdateOptions& options) {
  const ops::NAdamAttrs attrs{.grad_rate = options.grad_rate,
                              .average_rate = options.average_rate,
                              .beta1 = options.beta1,
                              .beta2 = options.beta2,
                              .eps = options.eps,
                              .decay = options.decay,
                              .is_decoupled = options.decoupled_weight_decay,
                              .maximize = options.maximize,
                              .correction2 = options.correction2};
  run(ops::kNAdamUpdate,
      {&param.tensor(), &grad.tensor(), &exp_avg.tensor(), &exp_avg_sq.tensor(),
       &options.grad_rate_tensor, &options.average_rate_tensor, &options.decay_tensor,
       &options.correction2_tensor, &options.beta1_tensor},
      attrs, param.site());
}

void rmsprop_update(const TensorArg& param, const TensorArg& grad, const TensorArg& square_avg,
                    const RMSpropUpdateOptions& options) {
  const ops::RMSpropAttrs attrs{.lr = options.lr,
                                .alpha = options.alpha,
                                .eps = options.eps,
                                .weight_decay = options.weight_decay,
                                .momentum = options.momentum,
                                .maximize = options.maximize};
  const Tensor &p = param, &g = grad, &v = square_avg, &a = options.grad_avg;
  const Tensor &b = options.momentum_buffer, &lr = options.lr_tensor;
  const Tensor& momentum = options.momentum_tensor;
  const Site site = param.site();
  if (a.defined() && b.defined()) {
    run(ops::kRMSpropCenteredMomentumUpdate, {&p, &g, &v, &a, &b, &lr, &momentum}, attrs, site);
  } else if (a.defined()) {
    run(ops::kRMSpropCenteredUpdate, {&p, &g, &v, &a, &lr}, attrs, site);
  } else if (b.defined()) {
    run(ops::kRMSpropMomentumUpdate, {&p, &g, &v, &b, &lr, &momentum}, attrs, site);
  } else {
    run(ops::kRMSpropUpdate, {&p, &g, &v, &lr}, attrs, site);
  }
}

void adagrad_update(const TensorArg& param, const TensorArg& grad, const TensorArg& sum,
                    const AdagradUpdateOptions& options) {
  const ops::AdagradAttrs attrs{.lr = options.lr,
                                .lr_decay = options.lr_decay,
                                .eps = options.eps,
                                .weight_decay = options.weight_decay,
                                .maximize = options.maximize,
                                .step = options.step};
  run(ops::kAdagradUpdate,
      {&param.tensor(), &grad.tensor(), &sum.tensor(), &options.lr_tensor, &options.step_tensor},
      attrs, param.site());
}

void adadelta_update(const TensorArg& param, const TensorArg& grad, const TensorArg& square_avg,
                     const TensorArg& acc_delta, const AdadeltaUpdateOptions& options) {
  const ops::AdadeltaAttrs attrs{.lr = options.lr,
                                 .rho = options.rho,
                                 .eps = options.eps,
                                 .weight_decay = options.weight_decay,
                                 .maximize = options.maximize};
  run(ops::kAdadeltaUpdate,
      {&param.tensor(), &grad.tensor(), &square_avg.tensor(), &acc_delta.tensor(),
       &options.lr_tensor},
      attrs, param.site());
}

void lamb_update(const TensorArg& param, const TensorArg& grad, const TensorArg& exp_avg,
                 const TensorArg& exp_avg_sq, const LambUpdateOptions& options) {
  const ops::AdamAttrs attrs = adam_attrs(options);
  const Site site = param.site();
  const Tensor direction = empty_like(param);
  run(ops::kLambDirection,
      {&param.tensor(), &grad.tensor(), &exp_avg.tensor(), &exp_avg_sq.tensor(), &direction,
       &options.step_tensor, &options.beta1_tensor},
      attrs, site);
  const Tensor length = norm_of(param, site), change = norm_of(direction, site);
  run(ops::kLambUpdate, {&param.tensor(), &direction, &length, &change, &options.lr_tensor}, attrs,
      site);
}

}  // namespace flow
