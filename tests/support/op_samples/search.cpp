#include "ops/index/search.h"

#include "ops/index/count.h"
#include "ops/index/sort.h"
#include "tests/support/op_samples/families.h"

namespace flow::contract {

Samples search_samples() {
  const auto one = [](const Inputs& x) { searchsorted(sort(x[0]).values, x[1]); };
  const auto right = [](const Inputs& x) {
    searchsorted(sort(x[0]).values, x[1], {.right = true});
  };
  const auto many = [](const Inputs& x) { histc(x[0], {.bins = 77, .min = -1, .max = 1.9}); };
  Samples samples = {
      {"searchsorted", {in({5}), in({5, 2})}, kNumbers, one},
      {"searchsorted", {in({5}), in({5, 2})}, kNumbers, right, "right"},
      {"searchsorted", {in({5, 2}), in({5, 2})}, kNumbers, one, "rows"},
      {"searchsorted", {in({40, 300}), in({40, 90})}, kNumbers, right, "many", true},
      // Away from the ends of bins, because partial sums are rounded.
      {"histc",
       {kinked({5, 2}, {-1.5, -0.5, 0.5, 1.5})},
       kFloats,
       [](const Inputs& x) { histc(x[0], {.bins = 3, .min = -1.5, .max = 1.5}); }},
      {"histc", {in({40, 300})}, kFloats, many, "many", true},
  };
  // In this sample the parts of a minimum are sorted; in general they are not.
  samples[2].is_general = false;
  return samples;
}

}  // namespace flow::contract
