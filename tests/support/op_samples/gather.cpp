#include "ops/index/gather.h"

#include "ops/index/scatter_reduce.h"
#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

void add_scatter_reduce(Samples& samples) {
  for (const std::string reduce : {"prod", "amax", "amin"}) {
    const auto add = [&](std::vector<SampleInput> inputs, int64_t dim, bool include_self,
                         const std::string& label) {
      samples.push_back({"scatter_reduce", std::move(inputs), kAllDTypes,
                         [=](const Inputs& x) {
                           scatter_reduce(x[0], dim, x[1], x[2], reduce,
                                          {.include_self = include_self});
                         },
                         reduce + label});
    };
    // Products need factors that are not zero, other reductions values without ties.
    const auto values = [&](const Shape& shape) {
      return reduce == "prod" ? kinked(shape, {0}) : distinct(shape);
    };
    add({values({5, 3}), positions({4, 3}, 5), values({4, 3})}, 0, true, "");
    add({values({2, 5}), positions({1, 3}, 5), values({2, 4})}, 1, false, " without self");
  }
}

}  // namespace

Samples gather_samples() {
  const std::vector<SampleInput> taken = {in({5, 3}), positions({4, 3}, 5)};
  const std::vector<SampleInput> smaller = {in({5, 3}), positions({2, 7}, 3)};
  const auto along_0 = [](const Inputs& x) { return gather(x[0], 0, x[1]); };
  const auto along_1 = [](const Inputs& x) { return gather(x[0], 1, x[1]); };
  Samples samples = {
      {"gather", taken, kAllDTypes, along_0},
      {"gather", smaller, kAllDTypes, along_1, "fewer rows"},
      {"gather",
       {in({2, 3, 5}), positions({2, 2, 4}, 5, DType::kInt32)},
       kAllDTypes,
       [](const Inputs& x) { gather(x[0], -1, x[1]); },
       "last of three"},
      {"gather", {in({5}), positions({7}, 5)}, kAllDTypes, along_0, "vector"},
      {"ungather", taken, kFloats, backward_of(along_0)},
      {"ungather", smaller, kFloats, backward_of(along_1), "fewer rows"},
      {"scatter",
       {in({5, 1}), distinct_positions({2, 1}, 5), in({2, 1})},
       kAllDTypes,
       [](const Inputs& x) { scatter(x[0], 0, x[1], x[2]); }},
      {"scatter",
       {in({2, 5}), distinct_positions({1, 3}, 5), in({2, 4})},
       kAllDTypes,
       [](const Inputs& x) { scatter(x[0], 1, x[1], x[2]); },
       "corner of src"},
      {"scatter_add",
       {in({5, 3}), positions({4, 3}, 5), in({4, 3})},
       kAllDTypes,
       [](const Inputs& x) { scatter_add(x[0], 0, x[1], x[2]); }},
      {"scatter_add",
       {in({2, 5}), positions({1, 3}, 5), in({2, 4})},
       kAllDTypes,
       [](const Inputs& x) { scatter_add(x[0], 1, x[1], x[2]); },
       "corner of src"},
      {"scatter_value",
       {in({5, 3}), positions({4, 3}, 5)},
       kAllDTypes,
       [](const Inputs& x) { scatter(x[0], 0, x[1], 1); }},
      {"scatter_value",
       {in({2, 5}), positions({2, 3}, 5)},
       kAllDTypes,
       [](const Inputs& x) { scatter(x[0], 1, x[1], 0); },
       "zero"},
  };
  add_scatter_reduce(samples);
  return samples;
}

}  // namespace flow::contract
