// LeNet for 28 × 28 digits, after LeCun et al. (1998), with the layer widths of OneFlow's tutorial.
#pragma once

#include "nn/layers/conv.h"
#include "nn/layers/dropout.h"
#include "nn/layers/linear.h"

namespace flow::models {

struct LenetOptions {
  double dropout = 0.5;
  int64_t num_classes = 10;
};

// x: (N, 1, 28, 28) → logits (N, num_classes). Layers: conv1 (1→32) and conv2 (32→64), 5 × 5 with
// "same" padding, each followed by relu and 2 × 2 max pooling; hidden (3136→512), followed by relu
// and dropout; outlayer (512→num_classes).
class Lenet : public nn::Module<Lenet> {
 public:
  explicit Lenet(LenetOptions options = {}, Site site = Site::here());
  Tensor forward(const Tensor& x);

 private:
  nn::Conv2d conv1_, conv2_;
  nn::Linear hidden_;
  nn::Dropout dropout_;
  nn::Linear outlayer_;
};

}  // namespace flow::models
