#include "nn/layers/batch_norm.h"

#include "autograd/grad_mode.h"
#include "core/error.h"
#include "ops/batch_norm.h"

namespace flow::nn {

BatchNormState::BatchNormState(int64_t num_features, const BatchNormOptions& options)
    : FeatureNormState(num_features, options.affine, options.track_running_stats),
      num_features_(num_features),
      options_(options) {}

Tensor BatchNormState::normalize(const char* layer, const Tensor& x, bool has_dims,
                                 bool is_training) const {
  if (!has_dims || x.size(1) != num_features_) {
    throw InvalidArgument(str("[", layer, "] the input is (N, ", num_features_,
                              ", …) with the dims of its name; received ", x.meta()));
  }
  double momentum = options_.momentum.value_or(0);
  if (is_training && num_batches_tracked.defined()) {
    const NoGradGuard no_grad;
    num_batches_tracked.add_(1);
    if (!options_.momentum) momentum = 1 / num_batches_tracked.item<double>();
  }
  return batch_norm(x, running_mean, running_var,
                    {.weight = weight,
                     .bias = bias,
                     .training = is_training || !running_mean.defined(),
                     .momentum = momentum,
                     .eps = options_.eps});
}

Tensor BatchNorm1d::forward(const Tensor& x) {
  return normalize("BatchNorm1d", x, x.dim() == 2 || x.dim() == 3, is_training());
}

Tensor BatchNorm2d::forward(const Tensor& x) {
  return normalize("BatchNorm2d", x, x.dim() == 4, is_training());
}

Tensor BatchNorm3d::forward(const Tensor& x) {
  return normalize("BatchNorm3d", x, x.dim() == 5, is_training());
}

}  // namespace flow::nn
