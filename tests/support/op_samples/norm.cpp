#include "ops/norm/norm.h"

#include <algorithm>

#include "core/dispatch.h"
#include "ops/norm/norm_op.h"
#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

Tensor plain_layer_norm(const Inputs& x) {
  return layer_norm(x[0], {x[0].size(-1)});
}

Tensor weighted_layer_norm(const Inputs& x) {
  return layer_norm(x[0], {x[0].size(-1)}, {.weight = x[1], .bias = x[2]});
}

Tensor plane_norm(const Inputs& x) {
  return layer_norm(x[0], {3, 4}, {.weight = x[1]});
}

Tensor biased_layer_norm(const Inputs& x) {
  return layer_norm(x[0], {x[0].size(-1)}, {.bias = x[1], .eps = 0.1});
}

Tensor plain_rms_norm(const Inputs& x) {
  return rms_norm(x[0], {x[0].size(-1)});
}

Tensor weighted_rms_norm(const Inputs& x) {
  return rms_norm(x[0], {x[0].size(-1)}, {.weight = x[1]});
}

int64_t pairs_of_channels(const Inputs& x) {
  return std::max<int64_t>(1, x[0].size(1) / 2);
}

Tensor plain_group_norm(const Inputs& x) {
  return group_norm(x[0], pairs_of_channels(x));
}

Tensor weighted_group_norm(const Inputs& x) {
  return group_norm(x[0], pairs_of_channels(x), {.weight = x[1], .bias = x[2]});
}

Tensor biased_group_norm(const Inputs& x) {
  return group_norm(x[0], std::max<int64_t>(1, x[0].size(1)), {.bias = x[1], .eps = 0.1});
}

Tensor scaled_group_norm(const Inputs& x) {
  return group_norm(x[0], 1, {.weight = x[1]});
}

// float32 (x, weight, bias)
void narrow_layer_norm(const Inputs& x) {
  for (const DType dtype : {DType::kBFloat16, DType::kFloat16}) {
    dispatch(ops::kLayerNormNarrow, {&x[0], &x[1], &x[2]},
             ops::NarrowNormAttrs{.num_dims = 1, .eps = 0.1, .dtype = dtype}, Site::here());
  }
}

// (dy of 16 bits, float32 x, float32 weight)
void narrow_layer_norm_backward(const Inputs& x) {
  dispatch_multi<3>(ops::kLayerNormNarrowBackward, {&x[0], &x[1], &x[2]},
                    ops::NormAttrs{.num_dims = 1, .eps = 0.1}, Site::here());
}

SampleInput float32(const Shape& shape) {
  return {.shape = shape, .dtype = DType::kFloat32};
}

struct Case {
  const char* op;
  std::vector<SampleInput> inputs;
  Tensor (*function)(const Inputs& x);
  const char* label;
};

}  // namespace

Samples norm_samples() {
  Samples samples;
  for (const auto& [op, inputs, function, label] : std::vector<Case>{
           {"layer_norm", {in({5, 4})}, plain_layer_norm, ""},
           {"layer_norm", {in({5, 4}), in({4}), in({4})}, weighted_layer_norm, "weighted"},
           {"layer_norm", {in({5, 3, 4}), in({3, 4})}, plane_norm, "two dims"},
           {"layer_norm", {in({5, 4}), in({4})}, biased_layer_norm, "biased"},
           {"layer_norm", {specials({30, 40})}, plain_layer_norm, "specials"},
           {"layer_norm", {sparse({40, 40}, 0.95)}, plain_layer_norm, "constant rows"},
           {"rms_norm", {specials({30, 40})}, plain_rms_norm, "specials"},
           {"rms_norm", {sparse({40, 40}, 0.98)}, plain_rms_norm, "zero rows"},
           {"layer_norm", {in({120, 300}), in({300}), in({300})}, weighted_layer_norm, "many"},
           {"group_norm", {in({3, 4, 5})}, plain_group_norm, ""},
           {"group_norm", {in({2, 4, 5}), in({4}), in({4})}, weighted_group_norm, "weighted"},
           {"group_norm", {in({2, 3, 2, 2}), in({3})}, biased_group_norm, "one channel each"},
           {"group_norm", {in({2, 3, 4}), in({3})}, scaled_group_norm, "one group"},
           {"group_norm", {specials({5, 6, 40})}, plain_group_norm, "specials"},
           {"group_norm", {in({9, 32, 9, 13}), in({32}), in({32})}, weighted_group_norm, "many"},
           {"rms_norm", {in({5, 4})}, plain_rms_norm, ""},
           {"rms_norm", {in({2, 5, 4}), in({4})}, weighted_rms_norm, "weighted"},
           {"rms_norm", {in({120, 300}), in({300})}, weighted_rms_norm, "many"},
       }) {
    const bool is_large = inputs[0].shape.numel() > 100;
    samples.push_back({op, inputs, kFloats, function, label});
    samples.back().only_kernels = is_large;
    samples.push_back(
        {std::string(op) + "_backward", inputs, kFloats, backward_of(function), label});
    samples.back().only_kernels = is_large;
  }
  for (const bool is_large : {false, true}) {
    const int64_t rows = is_large ? 120 : 5, columns = is_large ? 300 : 4;
    const SampleInput x = float32({rows, columns}), parameter = float32({columns});
    samples.push_back({.op = "layer_norm_narrow",
                       .inputs = {in({rows, columns}), in({columns}), in({columns})},
                       .dtypes = only(DType::kFloat32),
                       .call = narrow_layer_norm,
                       .label = is_large ? "many" : "",
                       .only_kernels = is_large});
    samples.push_back({.op = "layer_norm_narrow_backward",
                       .inputs = {in({rows, columns}), x, parameter},
                       .dtypes = only(DType::kBFloat16) | only(DType::kFloat16),
                       .call = narrow_layer_norm_backward,
                       .label = is_large ? "many" : "",
                       .only_kernels = is_large});
  }
  return samples;
}

}  // namespace flow::contract
