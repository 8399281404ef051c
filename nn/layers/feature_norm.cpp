#include "nn/layers/feature_norm.h"

#include "ops/creation/creation.h"

namespace flow::nn {

FeatureNormState::FeatureNormState(int64_t num_features, bool affine, bool track_running_stats) {
  if (affine) {
    weight = ones({num_features});
    bias = zeros({num_features});
  }
  if (track_running_stats) {
    running_mean = zeros({num_features});
    running_var = ones({num_features});
    num_batches_tracked = zeros({}, {.dtype = int64});
  }
}

}  // namespace flow::nn
