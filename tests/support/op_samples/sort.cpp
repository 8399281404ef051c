#include "ops/index/sort.h"

#include "tests/support/op_samples/families.h"

namespace flow::contract {

Samples sort_samples() {
  Samples samples = {
      {"sort", {distinct({2, 5})}, kAllDTypes, [](const Inputs& x) { sort(x[0]); }},
      {"sort",
       {distinct({5, 2})},
       kAllDTypes,
       [](const Inputs& x) { sort(x[0], {.dim = 0, .descending = true}); },
       "descending"},
      {"topk", {distinct({2, 5})}, kAllDTypes, [](const Inputs& x) { topk(x[0], 3); }},
      {"topk",
       {distinct({5, 2})},
       kAllDTypes,
       [](const Inputs& x) { topk(x[0], 2, {.dim = 0, .largest = false}); },
       "smallest"},
  };
  for (const SampleInput& input : {in({60, 400}), specials({20, 37})}) {
    samples.push_back({"sort", {input}, kAllDTypes, [](const Inputs& x) { sort(x[0]); }, "many"});
    samples.back().only_kernels = true;
    samples.push_back(
        {"topk", {input}, kAllDTypes, [](const Inputs& x) { topk(x[0], 9); }, "many"});
    samples.back().only_kernels = true;
  }
  return samples;
}

}  // namespace flow::contract
