// Convolution layers.
#pragma once

#include "nn/module.h"
#include "ops/conv.h"

namespace flow::nn {

struct Conv2dOptions {
  Ints stride = 1;
  Padding padding = 0;  // numbers per side, or "same", "valid"
  Ints dilation = 1;
  int64_t groups = 1;
  bool bias = true;
};

// x: (N, in_channels, H, W) → (N, out_channels, H', W'). weight: (out, in / groups, kH, kW);
// weight and bias start as U(-1/√fan_in, 1/√fan_in), as in PyTorch.
class Conv2d : public Module<Conv2d> {
 public:
  Conv2d(int64_t in_channels, int64_t out_channels, const Ints& kernel_size,
         const Conv2dOptions& options = {});
  Tensor forward(const Tensor& x);

  Tensor weight, bias;

 private:
  ConvOptions options_;
};

}  // namespace flow::nn
