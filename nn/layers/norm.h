// Normalisation layers. Weights start at 1, biases at 0.
#pragma once

#include <optional>

#include "nn/layers/feature_norm.h"
#include "nn/module.h"

namespace flow::nn {

struct LayerNormOptions {
  double eps = 1e-5;
  bool elementwise_affine = true;  // learn weight and bias
  bool bias = true;
};

// Normalises over the trailing dims `normalized_shape` with the biased variance (Ba et al. 2016).
class LayerNorm : public Module<LayerNorm> {
 public:
  explicit LayerNorm(const Shape& normalized_shape, LayerNormOptions options = {});
  // x: (…, normalized_shape) → the same shape.
  Tensor forward(const Tensor& x);

  Tensor weight, bias;

 private:
  Shape normalized_shape_;
  double eps_;
};

struct RMSNormOptions {
  std::optional<double> eps = {};  // unset: the spacing of the input's dtype at 1
  bool elementwise_affine = true;
};

// x / √(mean(x²) + eps) × weight over the trailing dims (Zhang and Sennrich 2019).
class RMSNorm : public Module<RMSNorm> {
 public:
  explicit RMSNorm(const Shape& normalized_shape, RMSNormOptions options = {});
  Tensor forward(const Tensor& x);

  Tensor weight;

 private:
  Shape normalized_shape_;
  std::optional<double> eps_;
};

struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;
};

// x: (N, num_channels, …), normalised over each of num_groups groups of channels of each sample (Wu
// and He 2018). weight, bias: (num_channels).
class GroupNorm : public Module<GroupNorm> {
 public:
  GroupNorm(int64_t num_groups, int64_t num_channels, GroupNormOptions options = {});
  Tensor forward(const Tensor& x);

  Tensor weight, bias;

 private:
  int64_t num_groups_;
  double eps_;
};

// Each channel of each sample by itself (Ulyanov et al. 2016).
struct InstanceNormOptions {
  double eps = 1e-5;
  double momentum = 0.1;  // weight of the new value in the running statistics
  bool affine = false;
  bool track_running_stats = false;  // which take the place of the input's in evaluation
};

// What the layers share.
class InstanceNormState : public FeatureNormState {
 protected:
  InstanceNormState(int64_t num_features, const InstanceNormOptions& options);
  Tensor normalize(const char* layer, const Tensor& x, int64_t dims, bool is_training) const;

 private:
  int64_t num_features_;
  InstanceNormOptions options_;
};

// x: (N, num_features, L).
class InstanceNorm1d : public FeatureNorm<InstanceNorm1d, InstanceNormState> {
 public:
  explicit InstanceNorm1d(int64_t num_features, const InstanceNormOptions& options = {})
      : FeatureNorm(num_features, options) {}

  Tensor forward(const Tensor& x);
};

// x: (N, num_features, H, W).
class InstanceNorm2d : public FeatureNorm<InstanceNorm2d, InstanceNormState> {
 public:
  explicit InstanceNorm2d(int64_t num_features, const InstanceNormOptions& options = {})
      : FeatureNorm(num_features, options) {}

  Tensor forward(const Tensor& x);
};

// x: (N, num_features, D, H, W).
class InstanceNorm3d : public FeatureNorm<InstanceNorm3d, InstanceNormState> {
 public:
  explicit InstanceNorm3d(int64_t num_features, const InstanceNormOptions& options = {})
      : FeatureNorm(num_features, options) {}

  Tensor forward(const Tensor& x);
};

}  // namespace flow::nn
