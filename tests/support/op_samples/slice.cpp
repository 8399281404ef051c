#include "ops/shape/slice.h"

#include "ops/shape/slice_op.h"
#include "tests/support/op_samples/families.h"

namespace flow::contract {

Samples slice_samples() {
  Samples samples = {
      {"slice", {in({7, 2})}, kAllDTypes, [](const Inputs& x) { slice(x[0], 0, 4, 7, 2); }},
      {"slice", {in({2, 5})}, kAllDTypes, [](const Inputs& x) { slice(x[0], 0); }, "whole"},
      {"slice", {in({2, 5})}, kAllDTypes, [](const Inputs& x) { narrow(x[0], 1, 3, 2); }, "narrow"},
      {"slice",
       {in({7, 2})},
       kAllDTypes,
       [](const Inputs& x) { slice(x[0], -2, -6, 100, 3); },
       "from the end"},
      {"slice",
       {in({5, 6})},
       kAllDTypes,
       [](const Inputs& x) {
         split(x[0], {1, 2, 3}, -1);
       },
       "split"},
      {"select", {in({5, 2})}, kAllDTypes, [](const Inputs& x) { select(x[0], 0, -2); }},
      {"select", {in({2, 5})}, kAllDTypes, [](const Inputs& x) { select(x[0], 1, 1); }, "dim 1"},
      {"unslice",
       {in({2, 3})},
       kAllDTypes,
       [](const Inputs& x) { ops::unslice(x[0], 1, 4, 9, 2); }},
      {"unslice",
       {in({2, 3})},
       kAllDTypes,
       [](const Inputs& x) { ops::unslice(x[0], 0, 3, 5, 1); },
       "dim 0"},
      {"unslice",
       {in({2, 3})},
       kAllDTypes,
       [](const Inputs& x) { ops::unslice(x[0], 0, 2, 8, 3); },
       "an element in each half"},
      {"unslice",
       {in({4, 2})},
       kAllDTypes,
       [](const Inputs& x) { ops::unslice(x[0], 0, 1, 8, 2); },
       "parts alike"},
      {"slice",
       {in({8, 2})},
       kAllDTypes,
       [](const Inputs& x) { slice(x[0], 0, 2, 8, 3); },
       "an element in each half"},
      {"slice",
       {in({8, 2})},
       kAllDTypes,
       [](const Inputs& x) { slice(x[0], 0, 1, 8, 2); },
       "parts alike"},
      {"slice_scatter",
       {in({8, 2}), in({2, 2})},
       kAllDTypes,
       [](const Inputs& x) { slice_scatter(x[0], x[1], 0, 2, 8, 3); },
       "an element in each half"},
      {"slice_scatter",
       {in({7, 2}), in({2, 2})},
       kAllDTypes,
       [](const Inputs& x) { slice_scatter(x[0], x[1], 0, 4, 7, 2); }},
      {"slice_scatter",
       {in({2, 5}), in({2})},
       kAllDTypes,
       [](const Inputs& x) { select_scatter(x[0], x[1], 1, -2); },
       "select"},
  };
  samples.push_back({"slice",
                     {in({5, 2})},
                     kAllDTypes,
                     [](const Inputs& x) { slice(x[0], 0, 3, 1); },
                     "nothing"});
  samples.back().is_general = false;
  samples.push_back({"slice_scatter",
                     {in({2, 5}), in({2, 5})},
                     kAllDTypes,
                     [](const Inputs& x) { slice_scatter(x[0], x[1], 1); },
                     "whole"});
  samples.back().is_general = false;
  return samples;
}

}  // namespace flow::contract
