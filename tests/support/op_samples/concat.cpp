#include "ops/shape/concat.h"

#include "tests/support/op_samples/families.h"

namespace flow::contract {

Samples concat_samples() {
  Samples samples = {
      {"cat",
       {in({5, 2}), in({3, 2})},
       kAllDTypes,
       [](const Inputs& x) {
         cat({x[0], x[1]});
       }},
      {"cat",
       {in({5, 2}), in({5, 1}), in({5, 3})},
       kAllDTypes,
       [](const Inputs& x) {
         cat({x[0], x[1], x[2]}, -1);
       },
       "three"},
      {"cat",
       {in({5, 2}), in({5, 2})},
       kAllDTypes,
       [](const Inputs& x) {
         stack({x[0], x[1]}, 1);
       },
       "stack"},
      {"cat", {in({3})}, kAllDTypes, [](const Inputs& x) { roll(x[0], -1); }, "roll back"},
      {"flip", {in({5, 2})}, kAllDTypes, [](const Inputs& x) { flip(x[0], 0); }},
      {"flip",
       {in({5, 2})},
       kAllDTypes,
       [](const Inputs& x) {
         flip(x[0], {0, 1});
       },
       "both"},
      {"cat", {in({5, 2})}, kAllDTypes, [](const Inputs& x) { roll(x[0], 2, 0); }, "roll"},
      {"pad",
       {in({5, 2})},
       kAllDTypes,
       [](const Inputs& x) {
         pad(x[0], {1, 2});
       }},
      {"pad",
       {in({5, 2, 3})},
       kAllDTypes,
       [](const Inputs& x) {
         pad(x[0], {0, 0, 1, 0}, {.value = 1});
       },
       "with 1"},
      {"pad",
       {in({5, 4})},
       kAllDTypes,
       [](const Inputs& x) {
         pad(x[0], {-1, 2, 1, -2}, {.value = -1});
       },
       "crops"},
      {"tril", {in({5, 4})}, kAllDTypes, [](const Inputs& x) { tril(x[0]); }},
      {"tril", {in({3, 4})}, kAllDTypes, [](const Inputs& x) { tril(x[0], 9); }, "everything"},
      {"tril", {in({2, 5, 4})}, kAllDTypes, [](const Inputs& x) { tril(x[0], -1); }, "below"},
      {"triu", {in({5, 4})}, kAllDTypes, [](const Inputs& x) { triu(x[0]); }},
      {"triu", {in({2, 5, 4})}, kAllDTypes, [](const Inputs& x) { triu(x[0], 1); }, "above"},
  };
  // Every signature holds for tensors without elements, or with zeros only.
  for (OpSample& sample : Samples{
           {"cat",
            {in({0, 2}), in({5, 2})},
            kAllDTypes,
            [](const Inputs& x) {
              cat({x[0], x[1]}, -2);
            },
            "an empty one"},
           {"triu", {in({3, 4})}, kAllDTypes, [](const Inputs& x) { triu(x[0], 9); }, "nothing"},
       }) {
    sample.is_general = false;
    samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace flow::contract
