#include "ops/elementwise/ternary.h"

#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

using Call = std::function<void(const Inputs& x)>;

// Adds samples of an op of several tensors: the shapes that broadcast, and many elements.
void add_calls(Samples& samples, const char* op, const std::vector<SampleInput>& operands,
               DTypeSet dtypes, const Call& call, const std::string& label) {
  const std::vector<std::pair<std::vector<Shape>, const char*>> cases{
      {{{5, 2}, {5, 2}, {5, 2}}, ""},
      {{{5, 2}, {2}, {5, 1}}, " repeats"},
      {{{2}, {5, 2}, {}}, " first repeats"},
      {{{3, 7000}, {3, 7000}, {3, 7000}}, " many"},
      {{{30, 70}, {70}, {30, 1}}, " many rows"},
  };
  for (const auto& [shapes, name] : cases) {
    std::vector<SampleInput> inputs = operands;
    for (size_t i = 0; i < inputs.size(); ++i)
      inputs[i].shape = shapes[i];
    samples.push_back({op, inputs, dtypes, call, label + name});
    samples.back().only_kernels = shapes[0].numel() > 100;
  }
}

}  // namespace

Samples ternary_samples() {
  Samples samples;
  const SampleInput any = in({});
  for (const double value : {1.0, -3.0}) {
    add_calls(
        samples, "addcmul", {any, any, any}, kNumbers,
        [=](const Inputs& x) { addcmul(x[0], x[1], x[2], {.value = value}); },
        str("value ", value));
    add_calls(
        samples, "addcdiv", {any, any, nonzero({})}, kFloats,
        [=](const Inputs& x) { addcdiv(x[0], x[1], x[2], {.value = value}); },
        str("value ", value));
  }
  add_calls(
      samples, "lerp", {any, any, kinked({}, {-0.5, 0.5})}, kFloats,
      [](const Inputs& x) { lerp(x[0], x[1], x[2]); }, "weights");
  for (const double weight : {-0.75, -0.25, 0.25, 0.75, 1.5}) {
    add_calls(
        samples, "lerp_scalar", {any, any}, kFloats,
        [=](const Inputs& x) { lerp(x[0], x[1], weight); }, str("weight ", weight));
  }
  return samples;
}

}  // namespace flow::contract
