// MobileNetV2 (Sandler et al. 2018) with torchvision's structure and names.
#pragma once

#include <array>
#include <vector>

#include "nn/layers/container.h"

namespace flow::models {

struct MobileNetV2Options {
  int64_t num_classes = 1000;
  double width_mult = 1;
  // Stages: expansion t, channels c, blocks n, stride s of the first block.
  std::vector<std::array<int64_t, 4>> inverted_residual_setting = {
      {1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
      {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  int64_t round_nearest = 8;  // channels are multiples of it
  double dropout = 0.2;
  int64_t input_channel = 32;
  int64_t last_channel = 1280;
};

// Expand by 1 × 1, filter each channel by 3 × 3, project by 1 × 1, each with batch norm, the first
// two with ReLU6; x is added where stride is 1 and the channels stay. Sub-module: conv.
class InvertedResidual : public nn::Module<InvertedResidual> {
 public:
  InvertedResidual(int64_t in_channels, int64_t out_channels, int64_t stride, int64_t expand_ratio);
  Tensor forward(const Tensor& x);

 private:
  bool adds_input_;
  nn::Sequential conv_;
};

// x: (N, 3, H, W) → (N, num_classes). features.0 (stride 2), the blocks, features.N (1 × 1), the
// mean of each plane, classifier (dropout and linear). Convolutions start as kaiming normal with
// fan_out, the linear layer as N(0, 0.01²), biases at 0.
class MobileNetV2 : public nn::Module<MobileNetV2> {
 public:
  explicit MobileNetV2(const MobileNetV2Options& options = {});
  Tensor forward(const Tensor& x);

  // The classifier's inputs.
  int64_t last_channel() const { return last_channel_; }

  nn::Sequential features, classifier;

 private:
  int64_t last_channel_;
};

MobileNetV2 mobilenet_v2(const MobileNetV2Options& options = {});

}  // namespace flow::models
