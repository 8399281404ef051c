#include "ops/reduce/order_statistics.h"

#include "tests/support/op_samples/families.h"

namespace flow::contract {

Samples order_statistics_samples() {
  const SampleInput values = distinct({5, 2});
  Samples samples = {
      {"kthvalue", {values}, kNumbers, [](const Inputs& x) { kthvalue(x[0], 2); }},
      {"kthvalue",
       {values},
       kNumbers,
       [](const Inputs& x) { kthvalue(x[0], 2, {.dim = 0, .keepdim = true}); },
       "keepdim"},
      {"median", {values}, kNumbers, [](const Inputs& x) { median(x[0], 0); }},
      {"nanmedian", {values}, kNumbers, [](const Inputs& x) { nanmedian(x[0], 0); }},
      {"mode", {values}, kAllDTypes, [](const Inputs& x) { mode(x[0], 0); }},
      {"median_of_all", {values}, kNumbers, [](const Inputs& x) { median(x[0]); }},
      {"nanmedian_of_all", {values}, kNumbers, [](const Inputs& x) { nanmedian(x[0]); }},
  };
  for (const SampleInput& input : {in({60, 400}), specials({20, 37})}) {
    const auto add = [&](const char* op, std::function<void(const Inputs& x)> call) {
      samples.push_back({op, {input}, kNumbers, std::move(call), "many", true});
    };
    add("kthvalue", [](const Inputs& x) { kthvalue(x[0], 30); });
    add("median", [](const Inputs& x) { median(x[0], 1); });
    add("nanmedian", [](const Inputs& x) { nanmedian(x[0], 1); });
    add("mode", [](const Inputs& x) { mode(x[0], 0); });
  }
  return samples;
}

}  // namespace flow::contract
