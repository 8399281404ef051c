#include "ops/random/random.h"

#include "core/dispatch.h"
#include "ops/random/random_op.h"
#include "tests/support/op_samples/families.h"

namespace flow::contract {

Samples random_samples() {
  Samples samples;
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    for (const Shape& shape : {Shape{5, 2}, Shape{3, 7001}}) {
      const std::string label = str(dtype, ' ', shape);
      const auto add = [&](const char* op, const std::function<void()>& call) {
        samples.push_back({op, {}, kNoDType, [call](const Inputs& /*x*/) { call(); }, label});
        samples.back().only_kernels = shape.numel() > 100;
      };
      if (dtype != DType::kBool) {
        add("randint", [=] { randint(1, 100, shape, {.dtype = dtype}); });
      }
      if (!is_floating(dtype)) continue;
      add("uniform", [=] { rand(shape, {.dtype = dtype}); });
      add("normal", [=] { normal(2, 3, shape, {.dtype = dtype}); });
    }
  }
  for (const Shape& shape : {Shape{5, 2}, Shape{3, 7001}}) {
    const bool is_large = shape.numel() > 100;
    const std::string label = str(shape);
    samples.push_back(
        {"uniform_fill", {in(shape)}, kFloats, [](const Inputs& x) { x[0].uniform_(-1, 2); }});
    samples.back().only_kernels = is_large;
    samples.push_back(
        {"normal_fill", {in(shape)}, kFloats, [](const Inputs& x) { x[0].normal_(1, 0.5); }});
    samples.back().only_kernels = is_large;
    samples.push_back(
        {"bernoulli", {in(shape, 0, 1)}, kFloats, [](const Inputs& x) { bernoulli(x[0]); }});
    samples.back().only_kernels = is_large;
    samples.push_back(
        {"randperm", {}, kNoDType, [shape](const Inputs& /*x*/) { randperm(shape.numel()); }});
    samples.back().only_kernels = is_large;
  }
  for (const OpDef* op : {&ops::kCheckedSpreads, &ops::kCheckedWeights}) {
    for (const Shape& shape : {Shape{5, 3}, Shape{3, 7001}}) {
      samples.push_back({op->name, {in(shape, 0.1, 2)}, kFloats, [op](const Inputs& x) {
                           dispatch(*op, {&x[0]}, Site::here());
                         }});
      samples.back().only_kernels = shape.numel() > 100;
    }
  }
  return samples;
}

}  // namespace flow::contract
