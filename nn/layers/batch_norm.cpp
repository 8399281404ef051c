#include "nn/layers/batch_norm.h"

#include "autograd/recompute.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"

namespace flow::nn {

BatchNormState::BatchNormState(const char* layer, int64_t num_features,
                               const BatchNormOptions& options, Site site)
    : FeatureNormState(layer, num_features,
                       {.affine = options.affine,
                        .bias = options.bias,
                        .statistics = options.track_running_stats},
                       site),
      options_(options) {}

Tensor BatchNormState::normalize(const char* layer, const Tensor& x, bool has_dims,
                                 bool is_training) const {
  if (!has_dims || !fits(x.size(1))) {
    throw InvalidArgument(str("[", layer, "] the input must be (N, ", num_features_,
                              ", …) with the number of dims in the layer's name; received ",
                              x.meta(),
                              "; reshape it, or make the layer with num_features = its dim 1"));
  }
  // A batch updates the running statistics once; recomputing its activations must not count it
  // again.
  const bool counts = is_training && running_mean.defined() && !is_recomputing();
  if (counts) {
    const NoGradGuard no_grad;
    count_batch_(num_batches_tracked);
  }
  const bool takes_average = counts && !options_.momentum;
  Tensor mean, var;  // what the call reads or updates
  if (takes_average) {
    mean = zeros_like(running_mean);
    var = zeros_like(running_var);
  } else if (counts || !is_training) {
    mean = running_mean;
    var = running_var;
  }
  Tensor y = batch_norm(x, mean, var,
                        {.weight = weight,
                         .bias = bias,
                         .training = is_training || !running_mean.defined(),
                         .momentum = options_.momentum.value_or(1),
                         .eps = options_.eps,
                         .stats = options_.stats});
  if (takes_average) average_in(mean, var);
  return y;
}

// Gives every batch so far the same weight.
void BatchNormState::average_in(const Tensor& mean, const Tensor& var) const {
  const NoGradGuard no_grad;
  const Tensor share = 1 / cast(num_batches_tracked, running_mean.dtype());
  running_mean.add_((mean - running_mean) * share);
  running_var.add_((var - running_var) * share);
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
