#include "ops/linear/matmul.h"

#include <array>

#include "core/dispatch.h"
#include "ops/linear/contract_and_sum_op.h"
#include "ops/linear/linear_gelu_op.h"
#include "ops/linear/matmul_op.h"
#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

OpSample contract_and_sum(const Shape& a, const Shape& b, int64_t operand, const char* label) {
  return {.op = "contract_leading_and_sum",
          .inputs = {in(a), in(b)},
          .call =
              [operand](const Inputs& x) {
                dispatch_multi<2>(ops::kContractLeadingAndSum, {&x[0], &x[1]},
                                  ops::ContractAndSumAttrs{operand}, Site::here());
              },
          .label = label,
          .only_kernels = a.numel() > 100};
}

OpSample linear_gelu(const std::vector<SampleInput>& inputs, const char* label, bool is_large) {
  return {
      .op = "linear_gelu_tanh",
      .inputs = inputs,
      .call =
          [](const Inputs& x) {
            const Tensor none;
            const std::array<const Tensor*, 3> given{&x[0], &x[1], x.size() > 2 ? &x[2] : &none};
            std::array<Tensor, 2> outputs;
            Call call{ops::kLinearGeluTanh, given, nullptr, Site::here()};
            dispatch(call, outputs.data());
          },
      .label = label,
      .only_kernels = is_large};
}

OpSample matmul_gelu_grad(const Shape& a, const Shape& b, const Shape& h, const char* label) {
  return {.op = "matmul_gelu_tanh_grad",
          .inputs = {in(a), in(b), in(h, -3, 3)},
          .call =
              [](const Inputs& x) {
                dispatch(ops::kMatmulGeluTanhGrad, {&x[0], &x[1], &x[2]}, Site::here());
              },
          .label = label,
          .only_kernels = h.numel() > 100};
}

}  // namespace

Samples matmul_samples() {
  return {
      {"matmul", {in({5, 3}), in({3, 2})}, kNumbers, [](const Inputs& x) { matmul(x[0], x[1]); }},
      {"matmul",
       {in({5}), in({5, 2})},
       kNumbers,
       [](const Inputs& x) { matmul(x[0], x[1]); },
       "vector by matrix"},
      {"matmul",
       {in({2, 5}), in({5})},
       kNumbers,
       [](const Inputs& x) { mv(x[0], x[1]); },
       "matrix by vector"},
      {"matmul", {in({5}), in({5})}, kNumbers, [](const Inputs& x) { dot(x[0], x[1]); }, "dot"},
      {"matmul",
       {in({2, 5, 3}), in({2, 3, 4})},
       kNumbers,
       [](const Inputs& x) { bmm(x[0], x[1]); },
       "batches"},
      {"matmul",
       {in({2, 1, 5, 3}), in({4, 3, 2})},
       kNumbers,
       [](const Inputs& x) { matmul(x[0], x[1]); },
       "batches that broadcast"},
      {"matmul",
       {in({2, 5, 3}), in({3, 4})},
       kNumbers,
       [](const Inputs& x) { matmul(x[0], x[1]); },
       "batch by matrix"},
      {"matmul",
       {in({1, 5}), in({5, 1})},
       kNumbers,
       [](const Inputs& x) { matmul(x[0], x[1]); },
       "1"},
      {"matmul",
       {in({3}), in({2, 3, 5})},
       kNumbers,
       [](const Inputs& x) { matmul(x[0], x[1]); },
       "vector by batches"},
      {.op = "matmul",
       .inputs = {in({70, 130}), in({130, 90})},
       .dtypes = kNumbers,
       .call = [](const Inputs& x) { matmul(x[0], x[1]); },
       .label = "many",
       .only_kernels = true},
      {"linear",
       {in({5, 3}), in({2, 3}), in({2})},
       kNumbers,
       [](const Inputs& x) { linear(x[0], x[1], x[2]); }},
      {"linear",
       {in({5}), in({2, 5}), in({2})},
       kNumbers,
       [](const Inputs& x) { linear(x[0], x[1], x[2]); },
       "vector"},
      {"linear",
       {in({2, 5, 3}), in({4, 3})},
       kNumbers,
       [](const Inputs& x) { linear(x[0], x[1]); },
       "without bias"},
      {.op = "linear",
       .inputs = {in({70, 130}), in({90, 130}), in({90})},
       .dtypes = kNumbers,
       .call = [](const Inputs& x) { linear(x[0], x[1], x[2]); },
       .label = "many",
       .only_kernels = true},
      {"contract_leading",
       {in({5, 3}), in({5, 2})},
       kNumbers,
       [](const Inputs& x) { ops::contract_leading(x[0], x[1]); }},
      {"contract_leading",
       {in({2, 5, 3}), in({2, 5, 4})},
       kNumbers,
       [](const Inputs& x) { ops::contract_leading(x[0], x[1]); },
       "batches"},
      {.op = "contract_leading",
       .inputs = {in({130, 70}), in({130, 90})},
       .dtypes = kNumbers,
       .call = [](const Inputs& x) { ops::contract_leading(x[0], x[1]); },
       .label = "many",
       .only_kernels = true},
      contract_and_sum({5, 3}, {5, 2}, 0, "sum of the first"),
      contract_and_sum({2, 5, 3}, {2, 5, 4}, 1, "sum of the second"),
      contract_and_sum({5, 1}, {5, 2}, 0, "sum of one column"),
      contract_and_sum({130, 70}, {130, 90}, 0, "many"),
      linear_gelu({in({5, 3}), in({8, 3}), in({8})}, "bias", false),
      linear_gelu({in({2, 5, 3}), in({4, 3})}, "without bias", false),
      linear_gelu({in({3, 70, 90}), in({72, 90})}, "many without bias", true),
      linear_gelu({in({70, 130}), in({96, 130}), in({96})}, "many", true),
      matmul_gelu_grad({5, 3}, {3, 8}, {5, 8}, "rows"),
      matmul_gelu_grad({2, 5, 3}, {3, 4}, {2, 5, 4}, "batches"),
      matmul_gelu_grad({3, 40, 70}, {70, 96}, {3, 40, 96}, "many"),
  };
}

}  // namespace flow::contract
