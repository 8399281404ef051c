// Batch normalisation layers (Ioffe and Szegedy 2015): y = (x - mean) / √(var + eps) × weight +
// bias for each feature (dim 1), with the biased variance.
#pragma once

#include <optional>

#include "nn/layers/feature_norm.h"
#include "ops/norm/batch_norm.h"

namespace flow::nn {

struct BatchNormOptions {
  double eps = 1e-5;
  // Weight of the new batch in the running statistics. Unset: the statistics are the plain average
  // over all batches.
  std::optional<double> momentum = 0.1;
  bool affine = true;  // learn weight (initially 1) and bias (initially 0)
  bool track_running_stats = true;
  bool bias = true;  // if false, affine learns the weight alone
  // Which samples of a global tensor give the statistics: those of the logical batch, or with
  // `local` those that each rank holds.
  BatchStats stats = BatchStats::kLogical;
};

inline constexpr BatchStats local = BatchStats::kLocal;  // NOLINT(readability-identifier-naming)

// The parameters and statistics that the layers share. In training, and always without running
// statistics, a batch is normalised by its own statistics; otherwise by the running ones. A batch
// updates the running statistics once; recomputing its activations does not update them again. A
// negative num_features is InvalidArgument.
class BatchNormState : public FeatureNormState {
 protected:
  BatchNormState(const char* layer, int64_t num_features, const BatchNormOptions& options,
                 Site site);
  Tensor normalize(const char* layer, const Tensor& x, bool has_dims, bool is_training) const;

 private:
  void average_in(const Tensor& mean, const Tensor& var) const;

  BatchNormOptions options_;
};

// x: (N, num_features) or (N, num_features, L).
class BatchNorm1d : public FeatureNorm<BatchNorm1d, BatchNormState> {
 public:
  explicit BatchNorm1d(int64_t num_features, const BatchNormOptions& options = {},
                       Site site = Site::here())
      : FeatureNorm("BatchNorm1d", num_features, options, site) {}

  Tensor forward(const Tensor& x);
};

// x: (N, num_features, H, W).
class BatchNorm2d : public FeatureNorm<BatchNorm2d, BatchNormState> {
 public:
  explicit BatchNorm2d(int64_t num_features, const BatchNormOptions& options = {},
                       Site site = Site::here())
      : FeatureNorm("BatchNorm2d", num_features, options, site) {}

  Tensor forward(const Tensor& x);
};

// x: (N, num_features, D, H, W).
class BatchNorm3d : public FeatureNorm<BatchNorm3d, BatchNormState> {
 public:
  explicit BatchNorm3d(int64_t num_features, const BatchNormOptions& options = {},
                       Site site = Site::here())
      : FeatureNorm("BatchNorm3d", num_features, options, site) {}

  Tensor forward(const Tensor& x);
};

}  // namespace flow::nn
