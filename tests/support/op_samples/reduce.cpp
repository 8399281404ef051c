#include "ops/reduce.h"

#include "tests/support/op_samples/families.h"

namespace flow::contract {

Samples reduce_samples() {
  return {
      {"sum", {in({5, 2})}, kAllDTypes, [](const Inputs& x) { sum(x[0]); }},
      {"sum",
       {in({5, 2, 3})},
       kAllDTypes,
       [](const Inputs& x) {
         sum(x[0], {0, 2});
       },
       "dims 0, 2"},
      {"sum",
       {in({5, 2})},
       kAllDTypes,
       [](const Inputs& x) { sum(x[0], -1, {.keepdim = true}); },
       "keepdim"},
      {.op = "sum",
       .inputs = {in({70, 1000})},
       .dtypes = kNumbers,
       .call = [](const Inputs& x) { sum(x[0]); },
       .label = "many",
       .only_kernels = true},
      {.op = "sum",
       .inputs = {in({1000, 70})},
       .dtypes = kNumbers,
       .call = [](const Inputs& x) { sum(x[0], 0); },
       .label = "many columns",
       .only_kernels = true},
      {.op = "sum",
       .inputs = {in({1000, 70})},
       .dtypes = kNumbers,
       .call = [](const Inputs& x) { sum(x[0], 1); },
       .label = "many rows",
       .only_kernels = true},
      {"mean", {in({5, 2})}, kFloats, [](const Inputs& x) { mean(x[0]); }},
      {"mean",
       {in({5, 2, 3})},
       kFloats,
       [](const Inputs& x) {
         mean(x[0], {0, 2});
       },
       "dims 0, 2"},
      {.op = "mean",
       .inputs = {in({300, 70})},
       .dtypes = kFloats,
       .call = [](const Inputs& x) { mean(x[0], 0); },
       .label = "many columns",
       .only_kernels = true},
      {"prod", {in({2, 5})}, kAllDTypes, [](const Inputs& x) { prod(x[0], 1); }},
      {"prod", {nonzero({3, 2})}, kAllDTypes, [](const Inputs& x) { prod(x[0]); }, "full"},
      {.op = "prod",
       .inputs = {in({60, 70}, 0.9, 1.1)},
       .dtypes = kFloats,
       .call = [](const Inputs& x) { prod(x[0], 0); },
       .label = "many columns",
       .only_kernels = true},
      {"sum_to", {in({5, 2})}, kAllDTypes, [](const Inputs& x) { sum_to(x[0], {2}); }},
      {"sum_to",
       {in({3, 5, 2})},
       kAllDTypes,
       [](const Inputs& x) {
         sum_to(x[0], {5, 1});
       },
       "1"},
      {.op = "any",
       .inputs = {specials({50, 20})},
       .dtypes = kAllDTypes,
       .call = [](const Inputs& x) { any(x[0], 0); },
       .label = "specials",
       .only_kernels = true},
      {"any", {sparse({5, 2}, 0.8)}, kAllDTypes, [](const Inputs& x) { any(x[0], 0); }},
      {"any", {sparse({2, 2}, 0.7)}, kAllDTypes, [](const Inputs& x) { any(x[0]); }, "full"},
      {"any", {mask({5, 2}, 0.8)}, kNoDType, [](const Inputs& x) { any(x[0], 0); }, "masks"},
      {.op = "all",
       .inputs = {specials({20, 50})},
       .dtypes = kAllDTypes,
       .call = [](const Inputs& x) { all(x[0], 1); },
       .label = "specials",
       .only_kernels = true},
      {"all", {sparse({2, 5}, 0.4)}, kAllDTypes, [](const Inputs& x) { all(x[0], 0); }},
      {"all", {sparse({2, 2}, 0.1)}, kAllDTypes, [](const Inputs& x) { all(x[0]); }, "full"},
      {"all", {mask({2, 5}, 0.3)}, kNoDType, [](const Inputs& x) { all(x[0], 0); }, "masks"},
  };
}

}  // namespace flow::contract
