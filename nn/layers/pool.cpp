#include "nn/layers/pool.h"

namespace flow::nn {

Tensor MaxPool1d::forward(const Tensor& x) {
  return max_pool1d(x, kernel_size_, options_);
}

Tensor MaxPool2d::forward(const Tensor& x) {
  return max_pool2d(x, kernel_size_, options_);
}

Tensor AvgPool1d::forward(const Tensor& x) {
  return avg_pool1d(x, kernel_size_, options_);
}

Tensor AvgPool2d::forward(const Tensor& x) {
  return avg_pool2d(x, kernel_size_, options_);
}

Tensor AdaptiveAvgPool1d::forward(const Tensor& x) {
  return adaptive_avg_pool2d(x.unsqueeze(-2), {1, output_size_}).squeeze(-2);
}

Tensor AdaptiveAvgPool2d::forward(const Tensor& x) {
  return adaptive_avg_pool2d(x, output_size_);
}

Tensor MaxPool3d::forward(const Tensor& x) {
  return max_pool3d(x, kernel_size_, options_);
}

Tensor AvgPool3d::forward(const Tensor& x) {
  return avg_pool3d(x, kernel_size_, options_);
}

Tensor AdaptiveAvgPool3d::forward(const Tensor& x) {
  return adaptive_avg_pool3d(x, output_size_);
}

Tensor AdaptiveMaxPool1d::forward(const Tensor& x) {
  return adaptive_max_pool1d(x, output_size_);
}

Tensor AdaptiveMaxPool2d::forward(const Tensor& x) {
  return adaptive_max_pool2d(x, output_size_);
}

Tensor AdaptiveMaxPool3d::forward(const Tensor& x) {
  return adaptive_max_pool3d(x, output_size_);
}

}  // namespace flow::nn
