#include "ops/shape/view.h"

#include "tests/support/op_samples/families.h"

namespace flow::contract {

Samples view_samples() {
  return {
      {"reshape",
       {in({4, 6})},
       kAllDTypes,
       [](const Inputs& x) {
         reshape(x[0], {2, 12});
       }},
      {"reshape", {in({5, 2})}, kAllDTypes, [](const Inputs& x) { flatten(x[0]); }, "flatten"},
      {"reshape",
       {in({5, 1, 2})},
       kAllDTypes,
       [](const Inputs& x) { squeeze(x[0], 1); },
       "squeeze"},
      {"reshape",
       {in({5, 2})},
       kAllDTypes,
       [](const Inputs& x) { unsqueeze(x[0], -1); },
       "unsqueeze"},
      {"permute",
       {in({5, 2, 3})},
       kAllDTypes,
       [](const Inputs& x) {
         permute(x[0], {2, 0, 1});
       }},
      {"permute", {in({5, 2})}, kAllDTypes, [](const Inputs& x) { t(x[0]); }, "t"},
      {"permute",
       {in({5, 2, 3})},
       kAllDTypes,
       [](const Inputs& x) { transpose(x[0], -1, 0); },
       "transpose"},
      {"permute",
       {in({5, 2, 3})},
       kAllDTypes,
       [](const Inputs& x) { movedim(x[0], -1, 1); },
       "movedim"},
      {"reshape",
       {in({5, 2, 3})},
       kAllDTypes,
       [](const Inputs& x) { flatten(x[0], 1, -1); },
       "flatten the end"},
      {"reshape",
       {in({4, 3})},
       kAllDTypes,
       [](const Inputs& x) {
         reshape(x[0], {-1, 2, 1, 3});
       },
       "four dims"},
      {"expand",
       {in({5, 1})},
       kAllDTypes,
       [](const Inputs& x) {
         expand(x[0], {2, -1, 4});
       }},
      {"expand",
       {in({})},
       kAllDTypes,
       [](const Inputs& x) {
         expand(x[0], {5, 2});
       },
       "scalar"},
  };
}

}  // namespace flow::contract
