#include "ops/reduce/scan.h"

#include "tests/support/op_samples/families.h"

namespace flow::contract {

Samples scan_samples() {
  const auto sums = [](const Inputs& x) { return cumsum(x[0], 0); };
  const auto products = [](const Inputs& x) { return cumprod(x[0], 1); };
  Samples samples = {
      {"cumsum", {in({5, 2})}, kAllDTypes, sums},
      {"cumsum", {in({5, 2})}, kFloats, backward_of(sums), "backwards"},
      {"cumprod", {in({2, 5})}, kAllDTypes, products},
      {"cumprod",
       {sparse({2, 5}, 0.3)},
       kAllDTypes,
       [](const Inputs& x) { cumprod(x[0], -1); },
       "zeros"},
      {"cumprod_backward", {in({2, 5})}, kFloats, backward_of(products)},
      {"cumprod_backward", {sparse({2, 5}, 0.3)}, kFloats, backward_of(products), "zeros"},
  };
  const auto sums_of_exp = [](const Inputs& x) { return logcumsumexp(x[0], 0); };
  samples.push_back(
      {"cummax", {distinct({2, 5})}, kAllDTypes, [](const Inputs& x) { cummax(x[0], 1); }});
  samples.push_back(
      {"cummin", {distinct({5, 2})}, kAllDTypes, [](const Inputs& x) { cummin(x[0], 0); }});
  for (const char* op : {"cummax", "cummin"}) {
    samples.push_back({op,
                       {specials({20, 37})},
                       kAllDTypes,
                       [op](const Inputs& x) { op[4] == 'a' ? cummax(x[0], 0) : cummin(x[0], 0); },
                       "specials",
                       true});
  }
  samples.push_back({"logcumsumexp", {in({5, 2})}, kFloats, sums_of_exp});
  samples.push_back({"logcumsumexp", {in({5, 2})}, kFloats, backward_of(sums_of_exp), "backwards"});
  samples.push_back({"logcumsumexp", {specials({20, 37})}, kFloats, sums_of_exp, "specials", true});
  for (const int64_t dim : {0, 1}) {
    const std::string label = str("many along ", dim);
    samples.push_back({"cumsum",
                       {in({90, 300})},
                       kAllDTypes,
                       [dim](const Inputs& x) { cumsum(x[0], dim); },
                       label});
    samples.back().only_kernels = true;
    samples.push_back({"cumprod",
                       {in({40, 30}, 0.9, 1.1)},
                       kFloats,
                       [dim](const Inputs& x) { cumprod(x[0], dim); },
                       label});
    samples.back().only_kernels = true;
  }
  return samples;
}

}  // namespace flow::contract
