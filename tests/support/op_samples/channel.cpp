#include "core/dispatch.h"
#include "ops/norm/batch_norm.h"
#include "ops/norm/channel_op.h"
#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

void affine(const Inputs& x) {
  ops::channel_affine(x[0], x[1], x.size() > 2 ? x[2] : Tensor());
}

void evaluate(const Inputs& x) {
  batch_norm(x[0], x[1], x[2]);
}

void dot(const Inputs& x) {
  ops::channel_dot(x[0], x[1]);
}

void squares(const Inputs& x) {
  dispatch(ops::kChannelSquares, {&x[0]}, Site::here());
}

constexpr DTypeSet kWideFloats = only(DType::kFloat32) | only(DType::kFloat64);

}  // namespace

Samples channel_samples() {
  return {
      {"channel_affine", {in({5, 2}), in({2}), in({2})}, kWideFloats, affine},
      {"channel_affine", {in({2, 5, 3}), in({5})}, kWideFloats, affine, "no shift"},
      {.op = "channel_affine",
       .inputs = {in({30, 40, 70}), in({40}), in({40}, 0.5, 2)},
       .dtypes = kFloats,
       .call = evaluate,
       .label = "large",
       .only_kernels = true},
      {"channel_squares", {in({5, 2})}, kFloats, squares},
      {"channel_squares", {in({2, 5, 3})}, kFloats, squares, "planes"},
      {.op = "channel_squares",
       .inputs = {in({30, 40, 70})},
       .dtypes = kFloats,
       .call = squares,
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
         dispatch(ops::kChannelMoments, {&x[0]}, ops::MomentsAttrs{20}, Site::here());
       }},
      {"channel_moments_backward",
       {{.shape = {2, 5}, .dtype = DType::kFloat64},
        {.shape = {2, 5}, .low = 0.5, .high = 2, .dtype = DType::kFloat64}},
       kNoDType,
       [](const Inputs& x) {
         dispatch(ops::kChannelMomentsBackward, {&x[0], &x[1]}, ops::MomentsAttrs{20},
                  Site::here());
       }},
  };
}

}  // namespace flow::contract
