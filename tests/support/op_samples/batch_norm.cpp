#include "ops/norm/batch_norm.h"

#include "core/dispatch.h"
#include "ops/norm/batch_norm_op.h"
#include "ops/norm/channel_op.h"
#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

void train(const Inputs& x) {
  BatchNormOptions options{.training = true};
  if (x.size() > 1) options.weight = x[1];
  if (x.size() > 2) options.bias = x[2];
  batch_norm(x[0], Tensor(), Tensor(), options);
}

// (dy, x, moments, weight or none)
void backward(const Inputs& x) {
  const Tensor none;
  dispatch_multi<3>(ops::kBatchNormBackward, {&x[0], &x[1], &x[2], x.size() > 3 ? &x[3] : &none},
                    ops::BatchNormAttrs{0.1}, Site::here());
}

constexpr ops::BatchNormHardtanhAttrs kClamped{.eps = 0.1, .min_val = -0.5, .max_val = 0.75};

// (x, weight or none, bias or none)
void clamped(const Inputs& x) {
  const Tensor none;
  dispatch_multi<2>(ops::kBatchNormHardtanh,
                    {&x[0], x.size() > 1 ? &x[1] : &none, x.size() > 2 ? &x[2] : &none}, kClamped,
                    Site::here());
}

// (dy, y, x, moments, weight or none)
void clamped_backward(const Inputs& x) {
  const Tensor none;
  dispatch_multi<3>(ops::kBatchNormHardtanhBackward,
                    {&x[0], &x[1], &x[2], &x[3], x.size() > 4 ? &x[4] : &none}, kClamped,
                    Site::here());
}

SampleInput moments(int64_t channels) {
  return {.shape = {2, channels}, .low = 0.5, .high = 2, .dtype = DType::kFloat64};
}

constexpr DTypeSet kWideFloats = only(DType::kFloat32) | only(DType::kFloat64);

}  // namespace

Samples batch_norm_samples() {
  return {
      {"batch_norm", {in({5, 2})}, kFloats, train},
      {"batch_norm", {in({2, 5, 3}), in({5}), in({5})}, kWideFloats, train, "parameters"},
      {.op = "batch_norm",
       .inputs = {in({30, 40, 70})},
       .dtypes = kFloats,
       .call = train,
       .label = "large",
       .only_kernels = true},
      {"batch_norm_backward", {in({5, 2}), in({5, 2}), moments(2)}, kFloats, backward},
      {"batch_norm_backward",
       {in({2, 5, 3}), in({2, 5, 3}), moments(5), in({5})},
       kWideFloats,
       backward,
       "weight"},
      {.op = "batch_norm",
       .inputs = {in({2, 20, 3, 3}), in({20}), in({20})},
       .dtypes = kWideFloats,
       .call = train,
       .label = "images",
       .only_kernels = true},
      {.op = "batch_norm_backward",
       .inputs = {in({2, 20, 3, 3}), in({2, 20, 3, 3}), moments(20), in({20})},
       .dtypes = kWideFloats,
       .call = backward,
       .label = "images",
       .only_kernels = true},
      {.op = "batch_norm_backward",
       .inputs = {in({30, 40, 70}), in({30, 40, 70}), moments(40)},
       .dtypes = kFloats,
       .call = backward,
       .label = "large",
       .only_kernels = true},
      {"batch_norm_hardtanh", {in({5, 2})}, kFloats, clamped},
      {"batch_norm_hardtanh",
       {in({2, 5, 3}), in({5}), in({5})},
       kWideFloats,
       clamped,
       "parameters"},
      {.op = "batch_norm_hardtanh",
       .inputs = {in({2, 20, 3, 3}), in({20}), in({20})},
       .dtypes = kWideFloats,
       .call = clamped,
       .label = "images",
       .only_kernels = true},
      {"batch_norm_hardtanh_backward",
       {in({5, 2}), in({5, 2}), in({5, 2}), moments(2)},
       kFloats,
       clamped_backward},
      {"batch_norm_hardtanh_backward",
       {in({2, 5, 3}), in({2, 5, 3}), in({2, 5, 3}), moments(5), in({5})},
       kWideFloats,
       clamped_backward,
       "weight"},
      {.op = "batch_norm_hardtanh_backward",
       .inputs = {in({2, 20, 3, 3}), in({2, 20, 3, 3}), in({2, 20, 3, 3}), moments(20), in({20})},
       .dtypes = kWideFloats,
       .call = clamped_backward,
       .label = "images",
       .only_kernels = true},
      {"update_running_stats",
       {in({5}), in({5}), moments(5)},
       kFloats,
       [](const Inputs& x) {
         dispatch_multi<2>(ops::kUpdateRunningStats, {&x[0], &x[1], &x[2]},
                           ops::RunningStatsAttrs{0.1, 5}, Site::here());
       }},
      {"count_batch",
       {{.low = 0, .high = 9, .dtype = DType::kInt64}},
       kNoDType,
       [](const Inputs& x) { count_batch_(x[0]); }},
  };
}

}  // namespace flow::contract
