// Batch normalisation layers (Ioffe and Szegedy 2015).
#pragma once

#include <optional>

#include "nn/layers/feature_norm.h"
#include "ops/norm/batch_norm.h"

namespace flow::nn {

struct BatchNormOptions {
  double eps = 1e-5;
  // Weight of the new value in the running statistics; unset: every batch counts alike.
  std::optional<double> momentum = 0.1;
  bool affine = true;  // learn weight (starts at 1) and bias (0)
  bool track_running_stats = true;
  // Of a global tensor: those of the logical batch, or `local`: of each rank's samples.
  BatchStats stats = BatchStats::kLogical;
};

inline constexpr BatchStats local = BatchStats::kLocal;

// What the layers share. In training, and always without running statistics, a batch is normalised
// by its own; of a global tensor by those of the logical batch, or of each rank's part.
class BatchNormState : public FeatureNormState {
 protected:
  BatchNormState(int64_t num_features, const BatchNormOptions& options);
  Tensor normalize(const char* layer, const Tensor& x, bool has_dims, bool is_training) const;

 private:
  int64_t num_features_;
  BatchNormOptions options_;
};

// x: (N, num_features) or (N, num_features, L).
class BatchNorm1d : public FeatureNorm<BatchNorm1d, BatchNormState> {
 public:
  explicit BatchNorm1d(int64_t num_features, const BatchNormOptions& options = {})
      : FeatureNorm(num_features, options) {}

  Tensor forward(const Tensor& x);
};

// x: (N, num_features, H, W).
class BatchNorm2d : public FeatureNorm<BatchNorm2d, BatchNormState> {
 public:
  explicit BatchNorm2d(int64_t num_features, const BatchNormOptions& options = {})
      : FeatureNorm(num_features, options) {}

  Tensor forward(const Tensor& x);
};

// x: (N, num_features, D, H, W).
class BatchNorm3d : public FeatureNorm<BatchNorm3d, BatchNormState> {
 public:
  explicit BatchNorm3d(int64_t num_features, const BatchNormOptions& options = {})
      : FeatureNorm(num_features, options) {}

  Tensor forward(const Tensor& x);
};

}  // namespace flow::nn
