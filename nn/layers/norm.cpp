#include "nn/layers/norm.h"

#include "core/error.h"
#include "ops/creation.h"
#include "ops/instance_norm.h"
#include "ops/norm.h"

namespace flow::nn {

namespace {
void check_input(const char* layer, const Tensor& x, int64_t dims, int64_t num_features) {
  if (x.dim() == dims && x.size(1) == num_features) return;
  throw InvalidArgument(str("[", layer, "] the input has ", dims, " dims, the second of size ",
                            num_features, "; received ", x.meta()));
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
  return rms_norm(x, normalized_shape_, {.weight = weight, .eps = eps_});
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

InstanceNorm1d::InstanceNorm1d(int64_t num_features, const InstanceNormOptions& options)
    : num_features_(num_features), options_(options) {
  weight = register_parameter("weight", options.affine ? ones({num_features}) : Tensor());
  bias = register_parameter("bias", options.affine ? zeros({num_features}) : Tensor());
  const bool tracks = options.track_running_stats;
  running_mean = register_buffer("running_mean", tracks ? zeros({num_features}) : Tensor());
  running_var = register_buffer("running_var", tracks ? ones({num_features}) : Tensor());
  num_batches_tracked =
      register_buffer("num_batches_tracked", tracks ? zeros({}, {.dtype = int64}) : Tensor());
}

Tensor InstanceNorm1d::forward(const Tensor& x) {
  check_input("InstanceNorm1d", x, 3, num_features_);
  return instance_norm(x, running_mean, running_var,
                       {.weight = weight,
                        .bias = bias,
                        .use_input_stats = is_training() || !running_mean.defined(),
                        .momentum = options_.momentum,
                        .eps = options_.eps});
}

InstanceNorm2d::InstanceNorm2d(int64_t num_features, const InstanceNormOptions& options)
    : num_features_(num_features), options_(options) {
  weight = register_parameter("weight", options.affine ? ones({num_features}) : Tensor());
  bias = register_parameter("bias", options.affine ? zeros({num_features}) : Tensor());
  const bool tracks = options.track_running_stats;
  running_mean = register_buffer("running_mean", tracks ? zeros({num_features}) : Tensor());
  running_var = register_buffer("running_var", tracks ? ones({num_features}) : Tensor());
  num_batches_tracked =
      register_buffer("num_batches_tracked", tracks ? zeros({}, {.dtype = int64}) : Tensor());
}

Tensor InstanceNorm2d::forward(const Tensor& x) {
  check_input("InstanceNorm2d", x, 4, num_features_);
  return instance_norm(x, running_mean, running_var,
                       {.weight = weight,
                        .bias = bias,
                        .use_input_stats = is_training() || !running_mean.defined(),
                        .momentum = options_.momentum,
                        .eps = options_.eps});
}

}  // namespace flow::nn
