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
  add("masks",
      "[t0 = lt(x0, x1), t1 = where(t0, x2, x0), t2 = cast(t1, dtype=float64), return t0 t1 t2]", 3,
      {in({5, 2}), in({5, 2}), in({5, 2})}, kAllDTypes);
  return samples;
}

}  // namespace flow::contract
