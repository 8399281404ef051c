// Layer, RMS, group and instance normalisation. Weights are initialised to 1, biases to 0.
#pragma once

#include <cstdint>
#include <initializer_list>
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
// weight, bias: normalized_shape.
class LayerNorm : public Module<LayerNorm> {
 public:
  LayerNorm(std::initializer_list<int64_t> normalized_shape, LayerNormOptions options = {},
            Site site = Site::here())
      : LayerNorm(Ints(normalized_shape), options, site) {}

  explicit LayerNorm(const Ints& normalized_shape, LayerNormOptions options = {},
                     Site site = Site::here());
  // x: (…, normalized_shape) → the same shape.
  Tensor forward(const Tensor& x);

  Tensor weight, bias;

 private:
  Shape normalized_shape_;
  double eps_;
};

struct RMSNormOptions {
  std::optional<double> eps = {};  // unset: the input's epsilon; float32's for 16 bits
  bool elementwise_affine = true;
};

// x / √(mean(x²) + eps) × weight over the trailing dims `normalized_shape` (Zhang and Sennrich
// 2019).
class RMSNorm : public Module<RMSNorm> {
 public:
  RMSNorm(std::initializer_list<int64_t> normalized_shape, RMSNormOptions options = {},
          Site site = Site::here())
      : RMSNorm(Ints(normalized_shape), options, site) {}

  explicit RMSNorm(const Ints& normalized_shape, RMSNormOptions options = {},
                   Site site = Site::here());
  Tensor forward(const Tensor& x);

  Tensor weight;

 private:
  Shape normalized_shape_;
  std::optional<double> eps_;
};

struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;
  bool bias = true;  // if false, affine learns the weight alone
};

// Normalises each sample over each of num_groups groups of channels (Wu and He 2018). x: (N,
// num_channels, …) → the same shape. weight, bias: (num_channels). A num_channels that num_groups
// does not divide is InvalidArgument.
class GroupNorm : public Module<GroupNorm> {
 public:
  GroupNorm(int64_t num_groups, int64_t num_channels, GroupNormOptions options = {},
            Site site = Site::here());
  Tensor forward(const Tensor& x);

  Tensor weight, bias;

 private:
  int64_t num_groups_;
  double eps_;
};

// Options of InstanceNorm1d, 2d and 3d, which normalise each channel of each sample by itself
// (Ulyanov et al. 2016).
struct InstanceNormOptions {
  double eps = 1e-5;
  double momentum = 0.1;  // weight of the new batch in the running statistics
  bool affine = false;
  // If true, evaluation uses running statistics instead of the input's.
  bool track_running_stats = false;
  bool bias = true;  // if false, affine learns the weight alone
};

// The parameters and statistics that the layers share.
class InstanceNormState : public FeatureNormState {
 protected:
  InstanceNormState(const char* layer, int64_t num_features, const InstanceNormOptions& options,
                    Site site);
  Tensor normalize(const char* layer, const Tensor& x, int64_t dims, bool is_training) const;

 private:
  InstanceNormOptions options_;
};

// x: (N, num_features, L), or (num_features, L) for one sample.
class InstanceNorm1d : public FeatureNorm<InstanceNorm1d, InstanceNormState> {
 public:
  explicit InstanceNorm1d(int64_t num_features, const InstanceNormOptions& options = {},
                          Site site = Site::here())
      : FeatureNorm("InstanceNorm1d", num_features, options, site) {}

  Tensor forward(const Tensor& x);
};

// x: (N, num_features, H, W), or (num_features, H, W) for one sample.
class InstanceNorm2d : public FeatureNorm<InstanceNorm2d, InstanceNormState> {
 public:
  explicit InstanceNorm2d(int64_t num_features, const InstanceNormOptions& options = {},
                          Site site = Site::here())
      : FeatureNorm("InstanceNorm2d", num_features, options, site) {}

  Tensor forward(const Tensor& x);
};

// x: (N, num_features, D, H, W), or (num_features, D, H, W) for one sample.
class InstanceNorm3d : public FeatureNorm<InstanceNorm3d, InstanceNormState> {
 public:
  explicit InstanceNorm3d(int64_t num_features, const InstanceNormOptions& options = {},
                          Site site = Site::here())
      : FeatureNorm("InstanceNorm3d", num_features, options, site) {}

  Tensor forward(const Tensor& x);
};

}  // namespace flow::nn
