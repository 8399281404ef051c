#include "ops/reduce/extrema.h"

#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

using OverDims = Tensor (*)(const TensorArg& x, const Ints& dims, const KeepdimOptions& options);
using OverDim = Tensor (*)(const TensorArg& x, int64_t dim, const KeepdimOptions& options);
using WithIndices = ValuesIndices (*)(const TensorArg& x, int64_t dim,
                                      const KeepdimOptions& options);

void add_many(Samples& samples, const char* op,
              const std::function<void(const Tensor& x, int64_t dim)>& call) {
  for (const int64_t dim : {0, 1}) {
    for (const SampleInput& input : {in({130, 200}), specials({20, 37})}) {
      samples.push_back({op,
                         {input},
                         kAllDTypes,
                         [call, dim](const Inputs& x) { call(x[0], dim); },
                         str(input.shape, " along ", dim)});
      samples.back().only_kernels = true;
    }
  }
}

void add_extremum(Samples& samples, const char* op, OverDims function) {
  samples.push_back({op, {distinct({5, 2})}, kAllDTypes, [function](const Inputs& x) {
                       function(x[0], {}, {});
                     }});
  samples.push_back({op,
                     {distinct({5, 2, 3})},
                     kAllDTypes,
                     [function](const Inputs& x) {
                       function(x[0], {0, 2}, {});
                     },
                     "dims 0, 2"});
  samples.push_back({op,
                     {distinct({5, 2})},
                     kAllDTypes,
                     [function](const Inputs& x) { function(x[0], -1, {.keepdim = true}); },
                     "keepdim"});
  add_many(samples, op, [function](const Tensor& x, int64_t dim) { function(x, dim, {}); });
}

void add_lines(Samples& samples, const char* op,
               const std::function<void(const Tensor&, int64_t, const KeepdimOptions&)>& call) {
  samples.push_back(
      {op, {distinct({5, 2})}, kAllDTypes, [call](const Inputs& x) { call(x[0], 0, {}); }});
  samples.push_back({op,
                     {distinct({2, 5, 3})},
                     kAllDTypes,
                     [call](const Inputs& x) { call(x[0], 1, {.keepdim = true}); },
                     "keepdim"});
  add_many(samples, op, [call](const Tensor& x, int64_t dim) { call(x, dim, {}); });
}

}  // namespace

Samples extrema_samples() {
  Samples samples;
  add_extremum(samples, "amax", amax);
  add_extremum(samples, "amin", amin);
  for (const auto& [op, function] :
       std::vector<std::pair<const char*, WithIndices>>{{"max", max}, {"min", min}}) {
    add_lines(samples, op,
              [function = function](const Tensor& x, int64_t dim, const KeepdimOptions& o) {
                function(x, dim, o);
              });
  }
  for (const auto& [op, function] :
       std::vector<std::pair<const char*, OverDim>>{{"argmax", argmax}, {"argmin", argmin}}) {
    add_lines(samples, op,
              [function = function](const Tensor& x, int64_t dim, const KeepdimOptions& o) {
                function(x, dim, o);
              });
  }
  for (const auto& [op, call] :
       std::vector<std::pair<const char*, std::function<void(const Inputs&)>>>{
           {"max", [](const Inputs& x) { max(x[0], -1); }},
           {"min", [](const Inputs& x) { min(x[0], -1); }},
           {"argmax", [](const Inputs& x) { argmax(x[0], -1); }},
           {"argmin", [](const Inputs& x) { argmin(x[0], -1); }}}) {
    samples.push_back({op, {sparse({30, 40}, 0.8)}, kAllDTypes, call, "ties"});
    samples.back().only_kernels = true;
  }
  samples.push_back(
      {"argmax", {distinct({5, 2})}, kAllDTypes, [](const Inputs& x) { argmax(x[0]); }, "all"});
  samples.push_back(
      {"argmin", {distinct({5, 2})}, kAllDTypes, [](const Inputs& x) { argmin(x[0]); }, "all"});
  return samples;
}

}  // namespace flow::contract
