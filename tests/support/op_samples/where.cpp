#include "ops/elementwise/where.h"

#include "ops/elementwise/where_op.h"
#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

const ClampOptions kBothBounds{.min = -1, .max = 1};

Samples where_only() {
  const auto call = [](const Inputs& x) { where(x[0], x[1], x[2]); };
  Samples samples = {
      {"where", {mask({5, 2}), in({5, 2}), in({5, 2})}, kAllDTypes, call},
      {"where", {mask({5, 1}), in({5, 2}), in({2})}, kAllDTypes, call, "repeats"},
  };
  samples.push_back(
      {"where", {mask({3, 7000}), in({3, 7000}), in({3, 7000})}, kAllDTypes, call, "many"});
  samples.back().only_kernels = true;
  return samples;
}

}  // namespace

Samples where_samples() {
  Samples samples = where_only();
  for (const int64_t value : {0, 1}) {
    const auto call = [value](const Inputs& x) { masked_fill(x[0], x[1], value); };
    const std::string label = str("with ", value);
    samples.push_back({"masked_fill", {in({5, 2}), mask({5, 2})}, kAllDTypes, call, label});
    samples.push_back({"masked_fill", {in({5, 2}), mask({2})}, kAllDTypes, call, label + " row"});
    samples.push_back(
        {"masked_fill", {in({3, 7000}), mask({3, 7000})}, kAllDTypes, call, label + " many"});
    samples.back().only_kernels = true;
  }
  const std::vector<double> kinks = {-1, 1};
  samples.push_back({"clamp", {kinked({5, 2}, kinks)}, kAllDTypes, [](const Inputs& x) {
                       clamp(x[0], kBothBounds);
                     }});
  samples.push_back({"clamp",
                     {kinked({5, 2}, kinks)},
                     kAllDTypes,
                     [](const Inputs& x) { clamp(x[0], {.max = 1}); },
                     "maximum"});
  samples.push_back({"clamp",
                     {kinked({5, 2}, kinks)},
                     kAllDTypes,
                     [](const Inputs& x) { clamp(x[0], {.min = 1, .max = 0}); },
                     "minimum above the maximum"});
  samples.back().is_general = false;  // all elements are equal
  for (const Shape& shape : {Shape{5, 2}, Shape{3, 7000}}) {
    samples.push_back({"clamp",
                       {specials(shape)},
                       kAllDTypes,
                       [](const Inputs& x) { clamp(x[0], {.min = -1}); },
                       str("minimum ", shape)});
    samples.back().only_kernels = true;
    samples.push_back({"clamp_grad",
                       {in(shape), kinked(shape, kinks)},
                       kAllDTypes,
                       [](const Inputs& x) {
                         ops::clamp_grad(x[0], x[1], {kBothBounds.min, kBothBounds.max});
                       },
                       str(shape)});
    samples.back().only_kernels = shape.numel() > 100;
  }
  return samples;
}

}  // namespace flow::contract
