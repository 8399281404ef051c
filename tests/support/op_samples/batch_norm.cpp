#include "ops/batch_norm.h"

#include "core/dispatch.h"
#include "ops/batch_norm_op.h"
#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

void train(const Inputs& x) {
  batch_norm(x[0], Tensor(), Tensor(), {.training = true});
}

void affine(const Inputs& x) {
  ops::channel_affine(x[0], x[1], x.size() > 2 ? x[2] : Tensor());
}

void dot(const Inputs& x) {
  ops::channel_dot(x[0], x[1]);
}

constexpr DTypeSet kWideFloats = only(DType::kFloat32) | only(DType::kFloat64);

}  // namespace

Samples batch_norm_samples() {
  return {
      {"channel_affine", {in({5, 2}), in({2}), in({2})}, kWideFloats, affine},
      {"channel_affine", {in({2, 5, 3}), in({5})}, kWideFloats, affine, "no shift"},
      {.op = "channel_affine",
       .inputs = {in({30, 40, 70})},
       .dtypes = kFloats,
       .call = train,
       .label = "large",
       .only_kernels = true},
      {"channel_squares", {in({5, 2})}, kFloats, train},
      {"channel_squares", {in({2, 5, 3})}, kFloats, train, "planes"},
      {.op = "channel_squares",
       .inputs = {in({30, 40, 70})},
       .dtypes = kFloats,
       .call = train,
       .label = "large",
       .only_kernels = true},
      {"channel_dot", {in({5, 2}), in({5, 2})}, kFloats, dot},
      {"channel_dot", {in({2, 5, 3}), in({2, 5, 3})}, kFloats, dot, "planes"},
      {.op = "channel_dot",
       .inputs = {in({30, 40, 70}), in({30, 40, 70})},
       .dtypes = kFloats,
       .call = dot,
       .label = "large",
       .only_kernels = true},
      {"channel_moments",
       {{.shape = {2, 5}, .low = 4, .high = 6, .dtype = DType::kFloat64}},
       kNoDType,
       [](const Inputs& x) {
         dispatch(ops::kChannelMoments, {&x[0]}, ops::MomentsAttrs{3}, Site::here());
       }},
      {"update_running_stats",
       {in({5}), in({5}), {.shape = {2, 5}, .low = 1, .high = 2, .dtype = DType::kFloat64}},
       kFloats,
       [](const Inputs& x) {
         dispatch_multi<2>(ops::kUpdateRunningStats, {&x[0], &x[1], &x[2]},
                           ops::RunningStatsAttrs{0.1, 1.25}, Site::here());
       }},
  };
}

}  // namespace flow::contract
