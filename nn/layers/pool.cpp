#include "nn/layers/pool.h"

namespace flow::nn {

namespace {

MaxUnpoolOptions with_size(MaxUnpoolOptions options, const Ints& output_size) {
  if (!output_size.empty()) options.output_size = output_size;
  return options;
}

}  // namespace

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

ValuesIndices MaxPool1d::forward_with_indices(const Tensor& x) {
  return max_pool1d_with_indices(x, kernel_size_, options_);
}

ValuesIndices AdaptiveMaxPool1d::forward_with_indices(const Tensor& x) {
  return adaptive_max_pool1d_with_indices(x, output_size_);
}

Tensor MaxUnpool1d::forward(const Tensor& x, const Tensor& indices, const Ints& output_size) {
  return max_unpool1d(x, indices, kernel_size_, with_size(options_, output_size));
}

ValuesIndices MaxPool2d::forward_with_indices(const Tensor& x) {
  return max_pool2d_with_indices(x, kernel_size_, options_);
}

ValuesIndices AdaptiveMaxPool2d::forward_with_indices(const Tensor& x) {
  return adaptive_max_pool2d_with_indices(x, output_size_);
}

Tensor MaxUnpool2d::forward(const Tensor& x, const Tensor& indices, const Ints& output_size) {
  return max_unpool2d(x, indices, kernel_size_, with_size(options_, output_size));
}

ValuesIndices MaxPool3d::forward_with_indices(const Tensor& x) {
  return max_pool3d_with_indices(x, kernel_size_, options_);
}

ValuesIndices AdaptiveMaxPool3d::forward_with_indices(const Tensor& x) {
  return adaptive_max_pool3d_with_indices(x, output_size_);
}

Tensor MaxUnpool3d::forward(const Tensor& x, const Tensor& indices, const Ints& output_size) {
  return max_unpool3d(x, indices, kernel_size_, with_size(options_, output_size));
}

}  // namespace flow::nn
