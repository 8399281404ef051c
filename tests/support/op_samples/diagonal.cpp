#include "ops/shape/diagonal.h"

#include "tests/support/op_samples/families.h"

namespace flow::contract {

Samples diagonal_samples() {
  return {
      {"diagonal", {in({5, 2, 5})}, kAllDTypes, [](const Inputs& x) { diagonal(x[0], 0, 0, 2); }},
      {"diagonal",
       {in({2, 5, 6})},
       kAllDTypes,
       [](const Inputs& x) { diagonal(x[0], -2, -1, 1); },
       "below"},
      {"diagonal", {in({2, 5})}, kAllDTypes, [](const Inputs& x) { diagonal(x[0], 2); }, "above"},
      {"undiagonal", {in({2, 5})}, kAllDTypes, [](const Inputs& x) { diag_embed(x[0]); }},
      {"undiagonal",
       {in({5, 2})},
       kAllDTypes,
       [](const Inputs& x) { diag_embed(x[0], -3, 2, 0); },
       "below"},
      {"diagonal_scatter",
       {in({5, 2, 5}), in({2, 5})},
       kAllDTypes,
       [](const Inputs& x) { diagonal_scatter(x[0], x[1], 0, 0, 2); }},
      {"diagonal_scatter",
       {in({2, 5}), in({2})},
       kAllDTypes,
       [](const Inputs& x) { diagonal_scatter(x[0], x[1], 2); },
       "above"},
  };
}

}  // namespace flow::contract
