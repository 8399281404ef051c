#include "ops/elementwise/special.h"

#include "ops/elementwise/special_op.h"
#include "ops/elementwise/unary.h"
#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

using Call = std::function<void(const Inputs& x)>;

// Adds samples of an op that takes tensors of one shape, small and large ones.
void add_calls(Samples& samples, const char* op, const std::vector<SampleInput>& operands,
               const Call& call) {
  for (const Shape& shape : {Shape{5, 2}, Shape{3, 7000}}) {
    std::vector<SampleInput> inputs = operands;
    for (SampleInput& input : inputs)
      input.shape = shape;
    samples.push_back({op, inputs, kFloats, call, shape == Shape{5, 2} ? "" : "many"});
    samples.back().only_kernels = shape != Shape{5, 2};
  }
}

// Functions of the parts of a number, and numbers of random events.
void add_parts(Samples& samples) {
  add_calls(samples, "nextafter", {in({}), in({})}, [](const Inputs& x) { nextafter(x[0], x[1]); });
  for (OpSample& sample : samples)  // the step is smaller than what results may differ by
    sample.is_general = sample.is_general && sample.op != "nextafter";
  const SampleInput between_powers = {
      .low = -3, .high = 3, .avoid = {-2, -1, -0.5, -0.25, 0, 0.25, 0.5, 1, 2}};
  add_calls(samples, "frexp_mantissa", {between_powers}, [](const Inputs& x) { frexp(x[0]); });
  add_calls(samples, "frexp_exponent", {between_powers},
            [](const Inputs& x) { ops::frexp_exponent(x[0]); });
  const SampleInput unit = in({}, 0, 0.99);
  add_calls(samples, "poisson_count", {in({}, 0, 9), unit},
            [](const Inputs& x) { ops::poisson_count(x[0], x[1]); });
  add_calls(samples, "binomial_count", {in({}, 0, 9), unit, unit},
            [](const Inputs& x) { ops::binomial_count(trunc(x[0]), x[1], x[2]); });
  for (OpSample& sample : samples) {
    if (sample.op == "binomial_count") sample.constant_inputs = 1;  // counts are whole
  }
}

}  // namespace

Samples special_samples() {
  const SampleInput positive = in({5, 2}, 0.3, 12);
  SampleInput around = kinked({5, 2}, {-3, -2, -1, 0});
  around.low = -2.8;
  around.gap = 0.2;
  Samples samples;
  for (const SampleInput& input : {positive, around}) {
    const std::string label = input.low > 0 ? "" : "negative";
    samples.push_back(
        {"lgamma", {input}, kAllDTypes, [](const Inputs& x) { lgamma(x[0]); }, label});
    samples.push_back({"polygamma",
                       {input},
                       kAllDTypes,
                       [](const Inputs& x) { digamma(x[0]); },
                       "digamma " + label});
    samples.push_back({"polygamma",
                       {input},
                       kAllDTypes,
                       [](const Inputs& x) { polygamma(1, x[0]); },
                       "trigamma " + label});
  }
  samples.push_back(
      {"polygamma", {positive}, kAllDTypes, [](const Inputs& x) { polygamma(3, x[0]); }, "third"});
  // A function that is monotonic for positive numbers need not be monotonic for all numbers.
  for (OpSample& sample : samples)
    sample.is_general = sample.inputs[0].low < 0 || sample.op == "lgamma";
  const SampleInput inside = in({5, 2}, -0.9, 0.9);
  samples.push_back({"erfinv", {inside}, kAllDTypes, [](const Inputs& x) { erfinv(x[0]); }});
  add_parts(samples);
  return samples;
}

}  // namespace flow::contract
