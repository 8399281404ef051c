#include "ops/update.h"

#include <bit>

#include "core/dispatch.h"
#include "ops/sbp_rules.h"
#include "ops/update_op.h"

namespace flow {

namespace ops {

namespace {

// The outputs are the mutated inputs; every tensor is like the parameter, but for the numbers that
// follow the first kTensors.
template <int kTensors>
void infer(InferContext& ctx) {
  const TensorMeta& param = ctx.input(0);
  ctx.check(is_floating(param.dtype), "the parameter must be floating");
  for (int i = 1; i < kTensors; ++i) {
    ctx.check(ctx.input(i).shape == param.shape && ctx.input(i).dtype == param.dtype,
              "gradient and state must have the parameter's shape and dtype");
  }
  for (int i = kTensors; i < ctx.num_inputs(); ++i) {
    if (!ctx.has_input(i)) continue;
    const TensorMeta& number = ctx.input(i);
    ctx.check(number.numel == 1 && number.shape.empty() &&
                  (number.dtype == DType::kFloat32 || number.dtype == DType::kFloat64),
              "lr and step must be float32 or float64 tensors without dims");
  }
  for (uint32_t left = ctx.op().mutates; left != 0; left &= left - 1) {
    ctx.add_output_like(std::countr_zero(left));
  }
}

// Elementwise in all tensors; lr and step have no dims and are B.
constexpr OpDef row(const char* name, int tensors, int numbers, uint32_t mutates, InferFn infer_fn,
                    const AttrsDef* attrs) {
  return {
      .name = name,
      .num_inputs = tensors + numbers,
      .num_outputs = std::popcount(mutates),
      .attrs = attrs,
      .infer = infer_fn,
      .sbp = elementwise_sbp,
      .grad = not_differentiable,
      .mutates = mutates,
  };
}

}  // namespace

const OpDef kSgdUpdate =
    row("sgd_update", kSgdTensors, 1, 0b01, infer<kSgdTensors>, attrs_def<SgdAttrs>());
const OpDef kSgdMomentumUpdate = row("sgd_momentum_update", kSgdMomentumTensors, 1, 0b101,
                                     infer<kSgdMomentumTensors>, attrs_def<SgdAttrs>());
const OpDef kAdamUpdate =
    row("adam_update", kAdamTensors, 2, 0b1101, infer<kAdamTensors>, attrs_def<AdamAttrs>());
const OpDef kAmsgradUpdate = row("amsgrad_update", kAmsgradTensors, 2, 0b11101,
                                 infer<kAmsgradTensors>, attrs_def<AdamAttrs>());

void register_update(OpTable& table) {
  table.add(kSgdUpdate);
  table.add(kSgdMomentumUpdate);
  table.add(kAdamUpdate);
  table.add(kAmsgradUpdate);
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
  if (options.max_exp_avg_sq.defined()) {
    dispatch_multi<4>(ops::kAmsgradUpdate,
                      {&param.tensor(), &grad.tensor(), &exp_avg.tensor(), &exp_avg_sq.tensor(),
                       &options.max_exp_avg_sq, &options.lr_tensor, &options.step_tensor},
                      attrs, site);
  } else {
    dispatch_multi<3>(ops::kAdamUpdate,
                      {&param.tensor(), &grad.tensor(), &exp_avg.tensor(), &exp_avg_sq.tensor(),
                       &options.lr_tensor, &options.step_tensor},
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
  if (momentum_buffer->defined()) {
    dispatch_multi<2>(
        ops::kSgdMomentumUpdate,
        {&param.tensor(), &grad.tensor(), &momentum_buffer.tensor(), &options.lr_tensor}, attrs,
        param.site());
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
