// Normalisation layers. Weights start at 1, biases at 0.
#pragma once

#include <optional>

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

struct InstanceNormOptions {
  double eps = 1e-5;
  bool affine = false;
};

// x: (N, num_features, L), each channel of each sample by itself (Ulyanov et al. 2016).
class InstanceNorm1d : public Module<InstanceNorm1d> {
 public:
  explicit InstanceNorm1d(int64_t num_features, InstanceNormOptions options = {});
  Tensor forward(const Tensor& x);

  Tensor weight, bias;

 private:
  int64_t num_features_;
  double eps_;
};

// x: (N, num_features, H, W).
class InstanceNorm2d : public Module<InstanceNorm2d> {
 public:
  explicit InstanceNorm2d(int64_t num_features, InstanceNormOptions options = {});
  Tensor forward(const Tensor& x);

  Tensor weight, bias;

 private:
  int64_t num_features_;
  double eps_;
};

}  // namespace flow::nn
