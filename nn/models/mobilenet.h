// MobileNetV2 (Sandler et al. 2018) with the structure and the parameter names of torchvision.
#pragma once

#include <array>
#include <vector>

#include "nn/layers/container.h"

namespace flow::models {

struct MobileNetV2Options {
  int64_t num_classes = 1000;
  double width_mult = 1;
  // One row per stage: expansion t, channels c, number of blocks n, stride s of the first block.
  std::vector<std::array<int64_t, 4>> inverted_residual_setting = {
      {1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
      {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  int64_t round_nearest = 8;  // channel counts are rounded to multiples of this
  double dropout = 0.2;
  int64_t input_channel = 32;
  int64_t last_channel = 1280;
};

// An inverted residual block: a 1 × 1 convolution expands the channels (left out if expand_ratio is
// 1), a 3 × 3 convolution filters each channel, a 1 × 1 convolution projects to out_channels. Each
// is followed by batch norm, the first two also by ReLU6. x is added if the stride is 1 and
// in_channels equals out_channels. Sub-module: conv. A stride other than 1 or 2 is InvalidArgument.
class InvertedResidual : public nn::Module<InvertedResidual> {
 public:
  InvertedResidual(int64_t in_channels, int64_t out_channels, int64_t stride, int64_t expand_ratio,
                   Site site = Site::here());
  Tensor forward(const Tensor& x);

 private:
  bool adds_input_;
  nn::Sequential conv_;
};

// x: (N, 3, H, W) → logits (N, num_classes). Layers: features.0 (3 × 3 convolution, stride 2), the
// blocks, features.N (1 × 1 convolution), the mean of each channel, classifier (dropout and
// linear). Convolutions are initialised as Kaiming normal with fan_out, the linear layer as N(0,
// 0.01²), biases to 0.
class MobileNetV2 : public nn::Module<MobileNetV2> {
 public:
  explicit MobileNetV2(const MobileNetV2Options& options = {}, Site site = Site::here());
  Tensor forward(const Tensor& x);

  // The number of features that the classifier takes.
  int64_t last_channel() const { return last_channel_; }

  nn::Sequential features, classifier;

 private:
  int64_t last_channel_;
};

// The same as MobileNetV2(options), under torchvision's name.
MobileNetV2 mobilenet_v2(const MobileNetV2Options& options = {}, Site site = Site::here());

}  // namespace flow::models
