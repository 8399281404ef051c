#include "tests/support/differentiable_call.h"

#include "boxing/redistribute.h"

namespace flow::contract {

Inputs differentiable_inputs(const RawCall& call, uint32_t constant_inputs, DType dtype) {
  Inputs inputs;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const Tensor& input = call.inputs[i];
    if (!input.defined()) {
      inputs.emplace_back();
      continue;
    }
    inputs.push_back(make_guarded(local_meta(input.shape(), input.dtype(), DeviceType::kCpu),
                                  read_values(input)));
    const bool is_constant = (constant_inputs >> i & 1U) != 0;
    if (input.dtype() == dtype && !is_constant) inputs[i].requires_grad_();
  }
  return inputs;
}

GradcheckFunction function_of(const RawCall& call) {
  return [call](const std::vector<Tensor>& inputs) {
    Inputs own = inputs;
    for (size_t i = 0; i < own.size(); ++i) {
      if (!own[i].defined()) continue;
      if ((call.mutates >> i & 1U) != 0) own[i] = own[i].clone();
      const Tensor& original = call.inputs[i];
      if (original.is_global()) {
        own[i] = own[i].to_global({.placement = original.placement(), .sbp = original.sbp()});
      }
    }
    std::vector<Tensor> outputs = dispatch_again(call, own);
    for (Tensor& output : outputs) {
      output = output.to_local();
      if (is_floating(output.dtype())) output = output.to(DType::kFloat64);
    }
    return outputs;
  };
}

}  // namespace flow::contract
