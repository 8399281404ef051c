// Definitions of the ops of ops/optimizer/update.h. Tensors in brackets are optional.
#pragma once

#include <tuple>

#include "core/op.h"

namespace flow::ops {

struct SgdAttrs {
  double lr = 0;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;
  bool is_first = false;

  static constexpr auto fields() {
    return std::tuple(
        value_field("lr", &SgdAttrs::lr), value_field("momentum", &SgdAttrs::momentum),
        value_field("dampening", &SgdAttrs::dampening),
        value_field("weight_decay", &SgdAttrs::weight_decay),
        key_field("nesterov", &SgdAttrs::nesterov), key_field("maximize", &SgdAttrs::maximize),
        value_field("is_first", &SgdAttrs::is_first));
  }
};

struct AdamAttrs {
  double lr = 0;
  double beta1 = 0;
  double beta2 = 0;
  double eps = 0;
  double weight_decay = 0;
  bool is_decoupled = false;  // AdamW
  bool maximize = false;
  int64_t step = 1;

  static constexpr auto fields() {
    return std::tuple(value_field("lr", &AdamAttrs::lr), value_field("beta1", &AdamAttrs::beta1),
                      value_field("beta2", &AdamAttrs::beta2), value_field("eps", &AdamAttrs::eps),
                      value_field("weight_decay", &AdamAttrs::weight_decay),
                      key_field("is_decoupled", &AdamAttrs::is_decoupled),
                      key_field("maximize", &AdamAttrs::maximize),
                      value_field("step", &AdamAttrs::step));
  }
};

struct NAdamAttrs {
  double grad_rate = 0;
  double average_rate = 0;
  double beta1 = 0;
  double beta2 = 0;
  double eps = 0;
  double decay = 0;
  bool is_decoupled = false;
  bool maximize = false;
  double correction2 = 1;

  static constexpr auto fields() {
    return std::tuple(
        value_field("grad_rate", &NAdamAttrs::grad_rate),
        value_field("average_rate", &NAdamAttrs::average_rate),
        value_field("beta1", &NAdamAttrs::beta1), value_field("beta2", &NAdamAttrs::beta2),
        value_field("eps", &NAdamAttrs::eps), value_field("decay", &NAdamAttrs::decay),
        key_field("is_decoupled", &NAdamAttrs::is_decoupled),
        key_field("maximize", &NAdamAttrs::maximize),
        value_field("correction2", &NAdamAttrs::correction2));
  }
};

struct RMSpropAttrs {
  double lr = 0;
  double alpha = 0;
  double eps = 0;
  double weight_decay = 0;
  double momentum = 0;
  bool maximize = false;

  static constexpr auto fields() {
    return std::tuple(value_field("lr", &RMSpropAttrs::lr),
                      value_field("alpha", &RMSpropAttrs::alpha),
                      value_field("eps", &RMSpropAttrs::eps),
                      value_field("weight_decay", &RMSpropAttrs::weight_decay),
                      value_field("momentum", &RMSpropAttrs::momentum),
                      key_field("maximize", &RMSpropAttrs::maximize));
  }
};

struct AdagradAttrs {
  double lr = 0;
  double lr_decay = 0;
  double eps = 0;
  double weight_decay = 0;
  bool maximize = false;
  int64_t step = 1;

  static constexpr auto fields() {
    return std::tuple(
        value_field("lr", &AdagradAttrs::lr), value_field("lr_decay", &AdagradAttrs::lr_decay),
        value_field("eps", &AdagradAttrs::eps),
        value_field("weight_decay", &AdagradAttrs::weight_decay),
        key_field("maximize", &AdagradAttrs::maximize), value_field("step", &AdagradAttrs::step));
  }
};

struct AdadeltaAttrs {
  double lr = 0;
  double rho = 0;
  double eps = 0;
  double weight_decay = 0;
  bool maximize = false;

  static constexpr auto fields() {
    return std::tuple(value_field("lr", &AdadeltaAttrs::lr),
                      value_field("rho", &AdadeltaAttrs::rho),
                      value_field("eps", &AdadeltaAttrs::eps),
                      value_field("weight_decay", &AdadeltaAttrs::weight_decay),
                      key_field("maximize", &AdadeltaAttrs::maximize));
  }
};

// (param, grad, [lr]) -> param
extern const OpDef kSgdUpdate;
// (param, grad, momentum_buffer, [lr], [momentum]) -> param, momentum_buffer
extern const OpDef kSgdMomentumUpdate;
// (param, grad, exp_avg, exp_avg_sq, [lr], [step], [beta1]) -> param, exp_avg, exp_avg_sq
extern const OpDef kAdamUpdate;
// (param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, [lr], [step], [beta1]) -> all but grad
extern const OpDef kAmsgradUpdate;
// The same with a float32 `master` of the 16-bit parameter after the other tensors, which it is
// written with.
extern const OpDef kSgdMasterUpdate, kSgdMomentumMasterUpdate, kAdamMasterUpdate,
    kAmsgradMasterUpdate;

// (param, grad, exp_avg, exp_inf, [lr], [step], [beta1]) -> param, exp_avg, exp_inf
extern const OpDef kAdamaxUpdate;
// (param, grad, exp_avg, exp_avg_sq, [lr], [step], [beta1]) -> param, exp_avg, exp_avg_sq
extern const OpDef kRAdamUpdate;
// (param, grad, exp_avg, exp_avg_sq, [grad_rate], [average_rate], [decay], [correction2], [beta1])
// -> param, exp_avg, exp_avg_sq
extern const OpDef kNAdamUpdate;
// (param, grad, square_avg, [lr]) -> param, square_avg. The other forms have grad_avg,
// momentum_buffer or both after square_avg, and write them too. Those with a momentum_buffer have
// [momentum] after [lr].
extern const OpDef kRMSpropUpdate, kRMSpropCenteredUpdate, kRMSpropMomentumUpdate,
    kRMSpropCenteredMomentumUpdate;
// (param, grad, sum, [lr], [step]) -> param, sum
extern const OpDef kAdagradUpdate;
// (param, grad, square_avg, acc_delta, [lr]) -> param, square_avg, acc_delta
extern const OpDef kAdadeltaUpdate;
// (param, grad, exp_avg, exp_avg_sq, direction, [step], [beta1]) -> exp_avg, exp_avg_sq, direction
extern const OpDef kLambDirection;
// (param, direction, |param|, |direction|, [lr]) -> param
extern const OpDef kLambUpdate;

// How many of an op's inputs have the parameter's shape. The inputs after them are numbers, such as
// lr and step.
inline constexpr int kSgdTensors = 2, kSgdMomentumTensors = 3, kAdamTensors = 4,
                     kAmsgradTensors = 5, kAdamaxTensors = 4, kRAdamTensors = 4, kNAdamTensors = 4,
                     kAdagradTensors = 3, kAdadeltaTensors = 4, kLambDirectionTensors = 5,
                     kLambTensors = 2;

constexpr int rmsprop_tensors(bool is_centered, bool has_momentum) {
  return 3 + (is_centered ? 1 : 0) + (has_momentum ? 1 : 0);
}

}  // namespace flow::ops
