#include "ops/elementwise/special.h"

#include "tests/support/op_samples/families.h"

namespace flow::contract {

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
  return samples;
}

}  // namespace flow::contract
