#include "ops/elementwise/compare.h"

#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

using Pair = Tensor (*)(const TensorArg& a, const TensorArg& b);
using WithNumber = Tensor (*)(const TensorArg& a, const Scalar& b);

// Half of all elements are zero, so that some pairs are equal.
void add_pairs(Samples& samples, const char* op, Pair function) {
  const auto call = [function](const Inputs& x) { function(x[0], x[1]); };
  samples.push_back({op, {sparse({5, 2}, 0.5), sparse({5, 2}, 0.5)}, kAllDTypes, call});
  samples.push_back({op, {sparse({5, 1}, 0.5), sparse({2}, 0.5)}, kAllDTypes, call, "repeats"});
  samples.push_back({op, {mask({5, 2}), mask({5, 2})}, kNoDType, call, "masks"});
  for (const auto& [shape, label] : {std::pair(Shape{3, 7000}, "many"), {Shape{7000}, "row"}}) {
    samples.push_back({op, {sparse({3, 7000}, 0.5), sparse(shape, 0.5)}, kAllDTypes, call, label});
    samples.back().only_kernels = true;
  }
  samples.push_back({op, {specials({4, 25}), specials({4, 25})}, kAllDTypes, call, "specials"});
  samples.back().only_kernels = true;
}

void add_scalar(Samples& samples, const char* op, WithNumber function) {
  const auto call = [function](const Inputs& x) { function(x[0], 0); };
  samples.push_back({op, {sparse({5, 2}, 0.5)}, kAllDTypes, call});
  samples.push_back({op, {sparse({3, 7000}, 0.5)}, kAllDTypes, call, "many"});
  samples.back().only_kernels = true;
}

}  // namespace

Samples compare_samples() {
  Samples samples;
  add_pairs(samples, "eq", eq);
  add_pairs(samples, "ne", ne);
  add_pairs(samples, "lt", lt);
  add_pairs(samples, "le", le);
  add_pairs(samples, "gt", gt);
  add_pairs(samples, "ge", ge);
  add_pairs(samples, "logical_and", logical_and);
  add_pairs(samples, "logical_or", logical_or);
  add_pairs(samples, "logical_xor", logical_xor);
  add_scalar(samples, "eq_scalar", eq);
  add_scalar(samples, "ne_scalar", ne);
  add_scalar(samples, "lt_scalar", lt);
  add_scalar(samples, "le_scalar", le);
  add_scalar(samples, "gt_scalar", gt);
  add_scalar(samples, "ge_scalar", ge);
  return samples;
}

}  // namespace flow::contract
