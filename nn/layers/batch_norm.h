// Batch normalisation layers (Ioffe and Szegedy 2015).
#pragma once

#include <optional>

#include "nn/module.h"

namespace flow::nn {

struct BatchNormOptions {
  double eps = 1e-5;
  // Weight of the new value in the running statistics; unset: every batch counts alike.
  std::optional<double> momentum = 0.1;
  bool affine = true;  // learn weight (starts at 1) and bias (0)
  bool track_running_stats = true;
};

// What the layers share. Buffers running_mean (0), running_var (1) and num_batches_tracked. In
// training, and always without running statistics, a batch is normalised by its own; of a global
// tensor by those of the logical batch.
class BatchNormState {
 public:
  Tensor weight, bias;
  Tensor running_mean, running_var, num_batches_tracked;

 protected:
  BatchNormState(int64_t num_features, const BatchNormOptions& options);
  Tensor normalize(const char* layer, const Tensor& x, bool has_dims, bool is_training) const;

 private:
  int64_t num_features_;
  BatchNormOptions options_;
};

// x: (N, num_features) or (N, num_features, L).
class BatchNorm1d : public Module<BatchNorm1d>, public BatchNormState {
 public:
  explicit BatchNorm1d(int64_t num_features, const BatchNormOptions& options = {});
  Tensor forward(const Tensor& x);
};

// x: (N, num_features, H, W).
class BatchNorm2d : public Module<BatchNorm2d>, public BatchNormState {
 public:
  explicit BatchNorm2d(int64_t num_features, const BatchNormOptions& options = {});
  Tensor forward(const Tensor& x);
};

// x: (N, num_features, D, H, W).
class BatchNorm3d : public Module<BatchNorm3d>, public BatchNormState {
 public:
  explicit BatchNorm3d(int64_t num_features, const BatchNormOptions& options = {});
  Tensor forward(const Tensor& x);
};

}  // namespace flow::nn
