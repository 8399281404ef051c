#include "nn/layers/batch_norm.h"

#include "autograd/recompute.h"
#include "core/error.h"
#include "core/grad_mode.h"

namespace flow::nn {

BatchNormState::BatchNormState(const char* layer, int64_t num_features,
                               const BatchNormOptions& options, Site site)
    : FeatureNormState(layer, num_features,
                       {.affine = options.affine,
                        .bias = options.bias,
                        .statistics = options.track_running_stats},
                       site),
      num_features_(num_features),
      options_(options) {}

Tensor BatchNormState::normalize(const char* layer, const Tensor& x, bool has_dims,
                                 bool is_training) const {
  if (!has_dims || x.size(1) != num_features_) {
    throw InvalidArgument(str("[", layer, "] the input must be (N, ", num_features_,
                              ", …) with the number of dims in the layer's name; received ",
                              x.meta(),
                              "; reshape it, or make the layer with num_features = its dim 1"));
  }
  double momentum = options_.momentum.value_or(0);
  // A batch updates the running statistics once; recomputing its activations must not count it
  // again.
  const bool counts = is_training && running_mean.defined() && !is_recomputing();
  if (counts) {
    const NoGradGuard no_grad;
    count_batch_(num_batches_tracked);
    if (!options_.momentum) momentum = 1 / num_batches_tracked.item<double>();
  }
  const bool has_statistics = counts || !is_training;
  const Tensor none;
  return batch_norm(x, has_statistics ? running_mean : none, has_statistics ? running_var : none,
                    {.weight = weight,
                     .bias = bias,
                     .training = is_training || !running_mean.defined(),
                     .momentum = momentum,
                     .eps = options_.eps,
                     .stats = options_.stats});
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
