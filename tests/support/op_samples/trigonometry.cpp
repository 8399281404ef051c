#include "ops/elementwise/trigonometry.h"

#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

struct Row {
  std::string op;
  Tensor (*function)(const TensorArg& x);
  SampleInput input;
};

}  // namespace

Samples trigonometry_samples() {
  const SampleInput plain = in({5, 2}, -3, 3);
  const SampleInput inside = in({5, 2}, -0.9, 0.9);
  Samples samples;
  for (const auto& [op, function, input] : std::vector<Row>{
           {"tan", tan, kinked({5, 2}, {-1.5708, 1.5708})},
           {"asin", asin, inside},
           {"acos", acos, inside},
           {"atan", atan, plain},
           {"sinh", sinh, plain},
           {"cosh", cosh, plain},
           {"asinh", asinh, plain},
           {"acosh", acosh, in({5, 2}, 1.2, 4)},
           {"atanh", atanh, inside},
       }) {
    const auto call = [function = function](const Inputs& x) { function(x[0]); };
    samples.push_back({op, {input}, kAllDTypes, call});
    if (op == "tan") samples.back().inputs[0].gap = 0.3;
    samples.push_back({op, {specials({4, 25})}, kAllDTypes, call, "specials", true});
  }
  const auto call = [](const Inputs& x) { atan2(x[0], x[1]); };
  samples.push_back({"atan2", {nonzero({5, 2}), in({2})}, kAllDTypes, call});
  samples.push_back({"atan2", {in({3, 7000}), in({3, 1})}, kAllDTypes, call, "many", true});
  return samples;
}

}  // namespace flow::contract
