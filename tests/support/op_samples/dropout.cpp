#include "ops/random/dropout.h"

#include "tests/support/op_samples/families.h"

namespace flow::contract {

Samples dropout_samples() {
  Samples samples;
  for (const Shape& shape : {Shape{5, 2}, Shape{3, 7001}}) {
    const auto call = [](const Inputs& x) { return dropout(x[0], {.p = 0.3}); };
    samples.push_back({"dropout", {in(shape)}, kFloats, call});
    samples.back().only_kernels = shape.numel() > 100;
    samples.push_back({"dropout_backward", {in(shape)}, kFloats, backward_of(call)});
    samples.back().only_kernels = shape.numel() > 100;
  }
  return samples;
}

}  // namespace flow::contract
