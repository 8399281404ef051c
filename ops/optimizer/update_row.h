// Rows of the op table for steps of optimizers.
#pragma once

#include <bit>

#include "core/op.h"
#include "ops/sbp_rules.h"

namespace flow::ops {

// Checks the inputs after the first kTensors, and adds the mutated inputs as outputs.
template <int kTensors>
void infer_numbers_and_outputs(InferContext& ctx) {
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
  infer_numbers_and_outputs<kTensors>(ctx);
}

// As infer_update, but the parameter and its gradient are 16-bit, and the state and the master, the
// last of kTensors, are float32.
template <int kTensors>
void infer_master_update(InferContext& ctx) {
  const TensorMeta& param = ctx.input(0);
  ctx.check(is_half(param.dtype),
            "only a float16 or bfloat16 parameter has a master; received a parameter of ",
            param.dtype);
  for (int i = 1; i < kTensors; ++i) {
    ctx.check(ctx.input(i).shape == param.shape &&
                  ctx.input(i).dtype == (i == 1 ? param.dtype : DType::kFloat32),
              "with a master, gradient and state must have the parameter's shape, the gradient its "
              "dtype, and state and master must be float32; received ",
              ctx.input(i), " for a parameter ", param);
  }
  infer_numbers_and_outputs<kTensors>(ctx);
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

// The same update of a parameter with a master. kTensors and `mutates` are those of the row without
// one.
template <int kTensors, class Attrs>
constexpr OpDef master_update_row(const char* name, int numbers, uint32_t mutates) {
  OpDef op = update_row<kTensors + 1, Attrs>(name, numbers, mutates | uint32_t{1} << kTensors);
  op.infer = infer_master_update<kTensors + 1>;
  return op;
}

}  // namespace flow::ops
