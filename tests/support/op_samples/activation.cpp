#include "ops/elementwise/activation.h"

#include "core/dispatch.h"
#include "ops/elementwise/activation_op.h"
#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

// An activation, its gradient, and values at which both are smooth.
struct Row {
  std::string op;
  std::function<Tensor(const TensorArg& x)> function;
  SampleInput input;
  std::string label = {};
};

std::vector<Row> rows() {
  return {
      {"celu", [](const TensorArg& x) { return celu(x); }, kinked({5, 2}, {0})},
      {"celu", [](const TensorArg& x) { return celu(x, {.alpha = -0.7}); }, kinked({5, 2}, {0}),
       "negative alpha"},
      {"selu", selu, kinked({5, 2}, {0})},
      {"hardtanh", [](const TensorArg& x) { return hardtanh(x); }, kinked({5, 2}, {-1, 1})},
      {"hardtanh",
       [](const TensorArg& x) { return hardtanh(x, {.min_val = 0, .max_val = 6}); },
       {.shape = {5, 2}, .low = -3, .high = 9, .avoid = {0, 6}},
       "zero to six"},
  };
}

SampleInput many(SampleInput input) {
  input.shape = {3, 7000};
  return input;
}

// (dy, x) of a fused gradient.
template <class... Attrs>
void add_grad(Samples& samples, const OpDef& op, const SampleInput& x, const Attrs&... attrs) {
  const auto call = [&op, attrs...](const Inputs& inputs) {
    dispatch(op, {&inputs[0], &inputs[1]}, attrs..., Site::here());
  };
  samples.push_back({op.name, {in(x.shape), x}, kFloats, call});
  samples.push_back({op.name, {in({3, 7000}), many(x)}, kFloats, call, "many", true});
}

void add_prelu(Samples& samples) {
  const auto call = [](const Inputs& x) { prelu(x[0], x[1]); };
  const SampleInput smooth = kinked({2, 5, 2}, {0});
  samples.push_back({"prelu", {smooth, in({1})}, kFloats, call, "one slope"});
  samples.push_back({"prelu", {smooth, in({5})}, kFloats, call, "channels"});
  samples.push_back({"prelu", {kinked({5}, {0}), in({})}, kFloats, call, "vector"});
  // If x is zero, an infinite slope gives NaN, so a slope may not be partial.
  for (OpSample& sample : samples)
    sample.is_general = sample.is_general && sample.op != "prelu";
  samples.push_back({"prelu", {sparse({2, 5, 2}, 0.4), in({5})}, kFloats, call, "zeros"});
  samples.back().constant_inputs = 1;
  samples.push_back({"prelu", {in({4, 5, 1500}), in({5})}, kFloats, call, "many", true});
  samples.push_back({"prelu", {specials({4, 25}), in({25})}, kFloats, call, "specials", true});
}

}  // namespace

Samples activation_samples() {
  Samples samples;
  for (const Row& row : rows()) {
    const auto call = [function = row.function](const Inputs& x) { function(x[0]); };
    samples.push_back({row.op, {row.input}, kFloats, call, row.label});
    samples.push_back({row.op, {many(row.input)}, kFloats, call, "many " + row.label, true});
    samples.push_back({row.op, {specials({4, 25})}, kFloats, call, "specials " + row.label, true});
  }
  add_prelu(samples);
  const SampleInput wide = {
      .shape = {5, 2}, .low = -5, .high = 5, .avoid = {-3, -1, 0, 1, 3}, .extremes = 0.3};
  add_grad(samples, ops::kScaledEluGrad, wide, ops::ScaledEluAttrs{1.5, 0.7, 0.8});
  add_grad(samples, ops::kMishGrad, wide);
  add_grad(samples, ops::kHardswishGrad, wide);
  add_grad(samples, ops::kHardsigmoidGrad, wide);
  add_grad(samples, ops::kHardtanhGrad, wide, ops::HardtanhAttrs{});
  add_grad(samples, ops::kSoftsignGrad, in({5, 2}, -2, 2));
  samples.back().inputs[1].avoid = {0};
  add_grad(samples, ops::kLogsigmoidGrad, wide);
  return samples;
}

}  // namespace flow::contract
