// Definitions of the ops of ops/update.h. Tensors in brackets are optional.
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

// (param, grad, [lr]) -> param
extern const OpDef kSgdUpdate;
// (param, grad, momentum_buffer, [lr]) -> param, momentum_buffer
extern const OpDef kSgdMomentumUpdate;
// (param, grad, exp_avg, exp_avg_sq, [lr], [step]) -> param, exp_avg, exp_avg_sq
extern const OpDef kAdamUpdate;
// (param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, [lr], [step]) -> all but grad
extern const OpDef kAmsgradUpdate;

// How many of an op's inputs have the parameter's shape; then come lr and step.
inline constexpr int kSgdTensors = 2, kSgdMomentumTensors = 3, kAdamTensors = 4,
                     kAmsgradTensors = 5;

}  // namespace flow::ops
