#include "ops/linear/vector_algebra.h"
#include "tests/support/op_samples/families.h"

namespace flow::contract {

Samples distance_samples() {
  Samples samples;
  const auto call = [](const Inputs& x) { return cdist(x[0], x[1]); };
  const auto add = [&](const SampleInput& a, const SampleInput& b, const char* label,
                       bool only_kernels) {
    samples.push_back({"cdist", {a, b}, kFloats, call, label, only_kernels});
    samples.push_back({"sum_differences", {a, b}, kFloats, backward_of(call), label, only_kernels});
  };
  add(in({4, 5}), in({3, 5}), "rows", false);
  add(in({2, 3, 5}), in({2, 4, 5}), "batches", false);
  add(in({3, 40, 37}), in({3, 70, 37}), "many", true);
  samples.push_back(
      {"cdist", {specials({9, 37}), specials({7, 37})}, kFloats, call, "specials", true});
  SampleInput wide = in({9, 37});
  wide.extremes = 0.2;
  samples.push_back({"cdist", {wide, wide}, kFloats, call, "extremes", true});
  return samples;
}

}  // namespace flow::contract
