#include "ops/optimizer/update.h"

#include "core/dispatch.h"
#include "ops/optimizer/update_op.h"
#include "ops/optimizer/update_row.h"

namespace flow {

namespace ops {

const OpDef kSgdUpdate = update_row<kSgdTensors, SgdAttrs>("sgd_update", 1, 0b01);
const OpDef kSgdMomentumUpdate =
    update_row<kSgdMomentumTensors, SgdAttrs>("sgd_momentum_update", 2, 0b101);
const OpDef kAdamUpdate = update_row<kAdamTensors, AdamAttrs>("adam_update", 3, 0b1101);
const OpDef kAmsgradUpdate = update_row<kAmsgradTensors, AdamAttrs>("amsgrad_update", 3, 0b11101);
const OpDef kSgdMasterUpdate =
    master_update_row<kSgdTensors, SgdAttrs>("sgd_master_update", 1, 0b01);
const OpDef kSgdMomentumMasterUpdate =
    master_update_row<kSgdMomentumTensors, SgdAttrs>("sgd_momentum_master_update", 2, 0b101);
const OpDef kAdamMasterUpdate =
    master_update_row<kAdamTensors, AdamAttrs>("adam_master_update", 3, 0b1101);
const OpDef kAmsgradMasterUpdate =
    master_update_row<kAmsgradTensors, AdamAttrs>("amsgrad_master_update", 3, 0b11101);

void register_update(OpTable& table) {
  for (const OpDef* op :
       {&kSgdUpdate, &kSgdMomentumUpdate, &kAdamUpdate, &kAmsgradUpdate, &kSgdMasterUpdate,
        &kSgdMomentumMasterUpdate, &kAdamMasterUpdate, &kAmsgradMasterUpdate}) {
    table.add(*op);
  }
}

}  // namespace ops

namespace {

void check_range(bool ok, const char* op, const char* name, double value, const char* wanted,
                 Site site) {
  if (ok) return;
  throw InvalidArgument(str("[", op, "] ", name, " is ", value, "; give a number ", wanted), site);
}

void run_adam(const TensorArg& param, const TensorArg& grad, const TensorArg& exp_avg,
              const TensorArg& exp_avg_sq, const AdamUpdateOptions& options, bool is_decoupled) {
  const char* name = is_decoupled ? "adamw_update" : "adam_update";
  const Site site = param.site();
  check_range(options.beta1 >= 0 && options.beta1 < 1, name, "beta1", options.beta1, "in [0, 1)",
              site);
  check_range(options.beta2 >= 0 && options.beta2 < 1, name, "beta2", options.beta2, "in [0, 1)",
              site);
  check_range(options.step >= 1, name, "step", static_cast<double>(options.step), "of at least 1",
              site);
  const ops::AdamAttrs attrs{
      .lr = options.lr,
      .beta1 = options.beta1,
      .beta2 = options.beta2,
      .eps = options.eps,
      .weight_decay = options.weight_decay,
      .is_decoupled = is_decoupled,
      .maximize = options.maximize,
      .step = options.step,
  };
  const Tensor &master = options.master, &largest = options.max_exp_avg_sq;
  if (master.defined() && largest.defined()) {
    dispatch_multi<5>(
        ops::kAmsgradMasterUpdate,
        {&param.tensor(), &grad.tensor(), &exp_avg.tensor(), &exp_avg_sq.tensor(), &largest,
         &master, &options.lr_tensor, &options.step_tensor, &options.beta1_tensor},
        attrs, site);
  } else if (master.defined()) {
    dispatch_multi<4>(ops::kAdamMasterUpdate,
                      {&param.tensor(), &grad.tensor(), &exp_avg.tensor(), &exp_avg_sq.tensor(),
                       &master, &options.lr_tensor, &options.step_tensor, &options.beta1_tensor},
                      attrs, site);
  } else if (largest.defined()) {
    dispatch_multi<4>(ops::kAmsgradUpdate,
                      {&param.tensor(), &grad.tensor(), &exp_avg.tensor(), &exp_avg_sq.tensor(),
                       &largest, &options.lr_tensor, &options.step_tensor, &options.beta1_tensor},
                      attrs, site);
  } else {
    dispatch_multi<3>(ops::kAdamUpdate,
                      {&param.tensor(), &grad.tensor(), &exp_avg.tensor(), &exp_avg_sq.tensor(),
                       &options.lr_tensor, &options.step_tensor, &options.beta1_tensor},
                      attrs, site);
  }
}

}  // namespace

void sgd_update(const TensorArg& param, const TensorArg& grad, const TensorArg& momentum_buffer,
                const SgdUpdateOptions& options) {
  const ops::SgdAttrs attrs{
      .lr = options.lr,
      .momentum = options.momentum,
      .dampening = options.dampening,
      .weight_decay = options.weight_decay,
      .nesterov = options.nesterov,
      .maximize = options.maximize,
      .is_first = options.is_first,
  };
  const Tensor& master = options.master;
  if (master.defined() && momentum_buffer.defined()) {
    dispatch_multi<3>(ops::kSgdMomentumMasterUpdate,
                      {&param.tensor(), &grad.tensor(), &momentum_buffer.tensor(), &master,
                       &options.lr_tensor, &options.momentum_tensor},
                      attrs, param.site());
  } else if (master.defined()) {
    dispatch_multi<2>(ops::kSgdMasterUpdate,
                      {&param.tensor(), &grad.tensor(), &master, &options.lr_tensor}, attrs,
                      param.site());
  } else if (momentum_buffer.defined()) {
    dispatch_multi<2>(ops::kSgdMomentumUpdate,
                      {&param.tensor(), &grad.tensor(), &momentum_buffer.tensor(),
                       &options.lr_tensor, &options.momentum_tensor},
                      attrs, param.site());
  } else {
    dispatch(ops::kSgdUpdate, {&param.tensor(), &grad.tensor(), &options.lr_tensor}, attrs,
             param.site());
  }
}

void adam_update(const TensorArg& param, const TensorArg& grad, const TensorArg& exp_avg,
                 const TensorArg& exp_avg_sq, const AdamUpdateOptions& options) {
  run_adam(param, grad, exp_avg, exp_avg_sq, options, false);
}

void adamw_update(const TensorArg& param, const TensorArg& grad, const TensorArg& exp_avg,
                  const TensorArg& exp_avg_sq, const AdamUpdateOptions& options) {
  run_adam(param, grad, exp_avg, exp_avg_sq, options, true);
}

}  // namespace flow
