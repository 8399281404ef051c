// Pooling layers.
#pragma once

#include "nn/module.h"
#include "ops/pool.h"

namespace flow::nn {

// x: (N, C, H, W) → maxima of kernel-sized windows; the stride defaults to the kernel size.
class MaxPool2d : public Module<MaxPool2d> {
 public:
  explicit MaxPool2d(Ints kernel_size, MaxPoolOptions options = {})
      : kernel_size_(std::move(kernel_size)), options_(std::move(options)) {}

  Tensor forward(const Tensor& x);

 private:
  Ints kernel_size_;
  MaxPoolOptions options_;
};

}  // namespace flow::nn
