// Rows of the op table for steps of optimizers.
#pragma once

#include <bit>

#include "core/op.h"
#include "ops/sbp_rules.h"

namespace flow::ops {

// The outputs are the mutated inputs. Every tensor is like the parameter except for the numbers,
// which follow the first kTensors.
template <int kTensors>
void infer_update(InferContext& ctx) {
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
              "numbers such as lr and step must be float32 or float64 tensors without dims");
  }
  for (uint32_t left = ctx.op().mutates; left != 0; left &= left - 1) {
    ctx.add_output_like(std::countr_zero(left));
  }
}

// Elementwise in all tensors. The numbers have no dims and are B.
template <int kTensors, class Attrs>
constexpr OpDef update_row(const char* name, int numbers, uint32_t mutates) {
  return {
      .name = name,
      .num_inputs = kTensors + numbers,
      .num_outputs = std::popcount(mutates),
      .attrs = attrs_def<Attrs>(),
      .infer = infer_update<kTensors>,
      .sbp = elementwise_sbp,
      .grad = not_differentiable,
      .mutates = mutates,
  };
}

}  // namespace flow::ops
