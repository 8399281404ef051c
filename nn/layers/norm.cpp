#include "nn/layers/norm.h"

#include "autograd/recompute.h"
#include "core/error.h"
#include "nn/layers/checks.h"
#include "nn/layers/option_text.h"
#include "ops/creation/creation.h"
#include "ops/norm/instance_norm.h"
#include "ops/norm/norm.h"

namespace flow::nn {

using internal::text_of;

LayerNorm::LayerNorm(const Ints& normalized_shape, LayerNormOptions options, Site site)
    : normalized_shape_(normalized_shape.values()), eps_(options.eps) {
  const SiteScope scope(site);
  internal::check_sizes("LayerNorm", "normalized_shape", normalized_shape_, site);
  const bool affine = options.elementwise_affine;
  weight = register_parameter("weight", affine ? ones(normalized_shape_) : Tensor());
  bias = register_parameter("bias", affine && options.bias ? zeros(normalized_shape_) : Tensor());
  set_extra_repr(str(text_of(normalized_shape_), ", eps=", text_of(eps_),
                     ", elementwise_affine=", text_of(affine), ", bias=", text_of(bias.defined())));
}

Tensor LayerNorm::forward(const Tensor& x) {
  return layer_norm(x, normalized_shape_, {.weight = weight, .bias = bias, .eps = eps_});
}

RMSNorm::RMSNorm(const Ints& normalized_shape, RMSNormOptions options, Site site)
    : normalized_shape_(normalized_shape.values()), eps_(options.eps) {
  const SiteScope scope(site);
  internal::check_sizes("RMSNorm", "normalized_shape", normalized_shape_, site);
  weight =
      register_parameter("weight", options.elementwise_affine ? ones(normalized_shape_) : Tensor());
  set_extra_repr(str(text_of(normalized_shape_), ", eps=", text_of(eps_),
                     ", elementwise_affine=", text_of(options.elementwise_affine)));
}

Tensor RMSNorm::forward(const Tensor& x) {
  return rms_norm(x, normalized_shape_, {.weight = weight, .eps = eps_});
}

GroupNorm::GroupNorm(int64_t num_groups, int64_t num_channels, GroupNormOptions options, Site site)
    : num_groups_(num_groups), eps_(options.eps) {
  const SiteScope scope(site);
  internal::check_positive("GroupNorm", {{"num_groups", num_groups}}, site);
  internal::check_sizes("GroupNorm", {{"num_channels", num_channels}}, site);
  if (num_channels % num_groups != 0) {
    throw InvalidArgument(str("[GroupNorm] num_channels must be divisible by num_groups; received ",
                              num_channels, " and ", num_groups));
  }
  weight = register_parameter("weight", options.affine ? ones({num_channels}) : Tensor());
  bias =
      register_parameter("bias", options.affine && options.bias ? zeros({num_channels}) : Tensor());
  set_extra_repr(str(num_groups, ", ", num_channels, ", eps=", text_of(eps_),
                     ", affine=", text_of(options.affine), ", bias=", text_of(bias.defined())));
}

Tensor GroupNorm::forward(const Tensor& x) {
  return group_norm(x, num_groups_, {.weight = weight, .bias = bias, .eps = eps_});
}

InstanceNormState::InstanceNormState(const char* layer, int64_t num_features,
                                     const InstanceNormOptions& options, Site site)
    : FeatureNormState(layer, num_features,
                       {.affine = options.affine,
                        .bias = options.bias,
                        .statistics = options.track_running_stats},
                       site),
      options_(options) {}

Tensor InstanceNormState::normalize(const char* layer, const Tensor& x, int64_t dims,
                                    bool is_training) const {
  const bool is_one_sample = x.dim() == dims - 1;
  if ((x.dim() != dims && !is_one_sample) || !fits(x.size(is_one_sample ? 0 : 1))) {
    throw InvalidArgument(str("[", layer, "] the input must have ", dims,
                              " dims, the second of size ", num_features_, ", or ", dims - 1,
                              ", the first of this size; received ", x.meta(),
                              "; reshape it, or use the layer for its number of dims"));
  }
  if (is_one_sample) return normalize(layer, x.unsqueeze(0), dims, is_training).squeeze(0);
  // Recomputing activations must not update the running statistics again.
  const bool has_statistics = !is_training || !is_recomputing();
  const Tensor none;
  return instance_norm(x, has_statistics ? running_mean : none, has_statistics ? running_var : none,
                       {.weight = weight,
                        .bias = bias,
                        .use_input_stats = is_training || !running_mean.defined(),
                        .momentum = options_.momentum,
                        .eps = options_.eps});
}

Tensor InstanceNorm1d::forward(const Tensor& x) {
  return normalize("InstanceNorm1d", x, 3, is_training());
}

Tensor InstanceNorm2d::forward(const Tensor& x) {
  return normalize("InstanceNorm2d", x, 4, is_training());
}

Tensor InstanceNorm3d::forward(const Tensor& x) {
  return normalize("InstanceNorm3d", x, 5, is_training());
}

}  // namespace flow::nn
