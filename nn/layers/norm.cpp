#include "nn/layers/norm.h"

#include <cmath>

#include "core/error.h"
#include "ops/creation.h"
#include "ops/norm.h"

namespace flow::nn {

namespace {
// The spacing of floating numbers at 1: 2 to the power of minus the bits after the point.
double spacing_of(DType dtype) {
  switch (dtype_size(dtype)) {
    case 8:
      return std::ldexp(1.0, -52);
    case 4:
      return std::ldexp(1.0, -23);
    default:
      return std::ldexp(1.0, dtype == bfloat16 ? -7 : -10);
  }
}

Tensor instance_norm(const char* layer, const Tensor& x, int64_t dims, int64_t num_features,
                     const NormalizationOptions& options) {
  if (x.dim() != dims || x.size(1) != num_features) {
    throw InvalidArgument(str("[", layer, "] the input has ", dims, " dims, the second of size ",
                              num_features, "; received ", x.meta()));
  }
  return group_norm(x, num_features, options);
}
}  // namespace

LayerNorm::LayerNorm(const Shape& normalized_shape, LayerNormOptions options)
    : normalized_shape_(normalized_shape), eps_(options.eps) {
  const bool affine = options.elementwise_affine;
  weight = register_parameter("weight", affine ? ones(normalized_shape) : Tensor());
  bias = register_parameter("bias", affine && options.bias ? zeros(normalized_shape) : Tensor());
}

Tensor LayerNorm::forward(const Tensor& x) {
  return layer_norm(x, normalized_shape_, {.weight = weight, .bias = bias, .eps = eps_});
}

RMSNorm::RMSNorm(const Shape& normalized_shape, RMSNormOptions options)
    : normalized_shape_(normalized_shape), eps_(options.eps) {
  weight =
      register_parameter("weight", options.elementwise_affine ? ones(normalized_shape) : Tensor());
}

Tensor RMSNorm::forward(const Tensor& x) {
  return rms_norm(x, normalized_shape_,
                  {.weight = weight, .eps = eps_.value_or(spacing_of(x.dtype()))});
}

GroupNorm::GroupNorm(int64_t num_groups, int64_t num_channels, GroupNormOptions options)
    : num_groups_(num_groups), eps_(options.eps) {
  if (num_groups <= 0 || num_channels % num_groups != 0) {
    throw InvalidArgument(str("[GroupNorm] num_channels must be divisible by num_groups; received ",
                              num_channels, " and ", num_groups));
  }
  weight = register_parameter("weight", options.affine ? ones({num_channels}) : Tensor());
  bias = register_parameter("bias", options.affine ? zeros({num_channels}) : Tensor());
}

Tensor GroupNorm::forward(const Tensor& x) {
  return group_norm(x, num_groups_, {.weight = weight, .bias = bias, .eps = eps_});
}

InstanceNorm1d::InstanceNorm1d(int64_t num_features, InstanceNormOptions options)
    : num_features_(num_features), eps_(options.eps) {
  weight = register_parameter("weight", options.affine ? ones({num_features}) : Tensor());
  bias = register_parameter("bias", options.affine ? zeros({num_features}) : Tensor());
}

Tensor InstanceNorm1d::forward(const Tensor& x) {
  return instance_norm("InstanceNorm1d", x, 3, num_features_,
                       {.weight = weight, .bias = bias, .eps = eps_});
}

InstanceNorm2d::InstanceNorm2d(int64_t num_features, InstanceNormOptions options)
    : num_features_(num_features), eps_(options.eps) {
  weight = register_parameter("weight", options.affine ? ones({num_features}) : Tensor());
  bias = register_parameter("bias", options.affine ? zeros({num_features}) : Tensor());
}

Tensor InstanceNorm2d::forward(const Tensor& x) {
  return instance_norm("InstanceNorm2d", x, 4, num_features_,
                       {.weight = weight, .bias = bias, .eps = eps_});
}

}  // namespace flow::nn
