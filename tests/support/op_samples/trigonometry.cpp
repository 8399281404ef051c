#include "ops/elementwise/trigonometry.h"

#include "tests/support/op_samples/families.h"

namespace flow::contract {

Samples trigonometry_samples() {
  Samples samples;
  const auto call = [](const Inputs& x) { atan2(x[0], x[1]); };
  samples.push_back({"atan2", {nonzero({5, 2}), in({2})}, kAllDTypes, call});
  samples.push_back({"atan2", {in({3, 7000}), in({3, 1})}, kAllDTypes, call, "many", true});
  return samples;
}

}  // namespace flow::contract
