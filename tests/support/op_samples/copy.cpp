#include "ops/creation/copy.h"

#include "tests/support/op_samples/families.h"

namespace flow::contract {

Samples copy_samples() {
  const auto copy = [](const Inputs& x) { x[0].copy_(x[1]); };
  Samples samples = {
      {"clone", {in({5, 2})}, kAllDTypes, [](const Inputs& x) { clone(x[0]); }},
      {"to_device",
       {in({5, 2})},
       kAllDTypes,
       [](const Inputs& x) { to_device(x[0], DeviceType::kCpu); }},
      {"copy_", {in({5, 2}), in({5, 2})}, kAllDTypes, copy},
      {"copy_", {in({5, 2}), in({2})}, kAllDTypes, copy, "row"},
      {"copy_",
       {in({5, 2}), {.shape = {5, 2}, .dtype = DType::kFloat32}},
       kFloats,
       copy,
       "other dtype"},
      {"fill_", {in({5, 2})}, kAllDTypes, [](const Inputs& x) { x[0].fill_(2); }},
      {"fill_", {in({5, 2})}, kAllDTypes, [](const Inputs& x) { x[0].zero_(); }, "zero"},
  };
  for (const char* op : {"clone", "copy_", "fill_"}) {
    samples.push_back({op,
                       {in({3, 7000}), in({3, 7000})},
                       kAllDTypes,
                       [](const Inputs& x) { x[0].copy_(clone(x[1])).fill_(1); },
                       "many"});
    samples.back().only_kernels = true;
  }
  return samples;
}

}  // namespace flow::contract
