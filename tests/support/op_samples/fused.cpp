#include <string>
#include <vector>

#include "core/dispatch.h"
#include "ops/elementwise/fused_op.h"
#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

// A call of the program with this text, which returns `num_outputs` results.
std::function<void(const Inputs& x)> call_of(const std::string& program, size_t num_outputs) {
  ops::FusedAttrs attrs;
  ops::parse_field(program, attrs.program);
  return [attrs, num_outputs](const Inputs& x) {
    std::vector<const Tensor*> inputs;
    for (const Tensor& tensor : x)
      inputs.push_back(&tensor);
    std::vector<Tensor> outputs(num_outputs);
    Call call{ops::kFusedElementwise, inputs, &attrs, Site::here()};
    dispatch(call, outputs.data());
  };
}

}  // namespace

Samples fused_samples() {
  Samples samples;
  const auto add = [&](const std::string& label, const std::string& program, size_t num_outputs,
                       const std::vector<SampleInput>& inputs, DTypeSet dtypes) {
    samples.push_back({"fused_elementwise", inputs, dtypes, call_of(program, num_outputs), label});
    for (const SampleInput& input : inputs)
      samples.back().only_kernels |= input.shape.numel() > 100;
  };
  const std::string linear =
      "[t0 = mul_scalar(x0, value=2), t1 = add(t0, x1, alpha=3), t2 = neg(t1), return t0 t2]";
  add("linear", linear, 2, {in({5, 2}), in({2})}, kNumbers);
  const std::string line =
      "[t0 = mul(x0, x1), t1 = add(t0, x2, alpha=1), t2 = tanh(t1), return t2]";
  add("line", line, 1, {in({5, 2}), in({5, 1}), in({})}, kFloats);
  add("repeats", line, 1, {in({40, 130}), in({40, 1}), in({130})}, kFloats);
  add("long", line, 1, {in({3, 7000}), in({7000}), in({3, 1})}, kFloats);
  add("images", line, 1, {in({2, 5, 12, 14}), in({2, 5, 12, 14}), in({2, 5, 12, 14})}, kFloats);
  add("activations",
      "[t0 = cast(x0, dtype=float32), t1 = gelu(t0), t2 = gelu_tanh(t1), t3 = silu(t2), t4 = "
      "sigmoid(t3), t5 = tanh(t4), t6 = relu(t5), t7 = square(t6), t8 = exp(t7), t9 = sqrt(t8), "
      "t10 = cast(t9, dtype=bfloat16), return t9 t10]",
      2, {in({5, 7})}, kFloats);
  add("gradients",
      "[t0 = relu_grad(x0, x1), t1 = tanh_grad(t0, x1), t2 = sigmoid_grad(t1, x1), t3 = "
      "gelu_grad(t2, x1), t4 = gelu_tanh_grad(t3, x1), t5 = silu_grad(t4, x1), t6 = sub(t5, x0), "
      "t7 = div(t6, x2), return t5 t7]",
      2, {in({5, 4}), in({5, 4}), {.shape = {4}, .low = 0.5, .high = 2}}, kFloats);
  add("numbers",
      "[t0 = add_scalar(x0, value=2), t1 = sub_scalar(t0, value=0.5), t2 = rsub_scalar(t1, "
      "value=3), t3 = mul_scalar(t2, value=-2), t4 = div_scalar(t3, value=4), t5 = neg(t4), t6 = "
      "rdiv_scalar(x1, value=1.5), t7 = mul(t5, t6), return t5 t7]",
      2, {in({5, 3}), {.shape = {5, 3}, .low = 0.5, .high = 2}}, kFloats);
  samples.back().is_general = false;  // the order of results follows x0 alone if x1 is positive
  add("masks",
      "[t0 = lt(x0, x1), t1 = where(t0, x2, x0), t2 = cast(t1, dtype=float64), return t0 t1 t2]", 3,
      {in({5, 2}), in({5, 2}), in({5, 2})}, kAllDTypes);
  return samples;
}

}  // namespace flow::contract
