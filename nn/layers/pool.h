// Pooling layers. The stride defaults to the kernel size. Each layer calls the function of its name
// in ops/conv/pool.h. Sizes of kernels, strides and dilations below 1 and negative paddings and
// output sizes are InvalidArgument.
#pragma once

#include "nn/module.h"
#include "ops/conv/fractional_pool.h"
#include "ops/conv/max_unpool.h"
#include "ops/conv/pool.h"
#include "ops/conv/pool_volume.h"

namespace flow::nn {

// The maximum of each window. x: (N, C, L) → (N, C, L').
class MaxPool1d : public Module<MaxPool1d> {
 public:
  explicit MaxPool1d(Ints kernel_size, MaxPoolOptions options = {}, Site site = Site::here());
  Tensor forward(const Tensor& x);
  // Also returns the indices of the maxima, for MaxUnpool.
  ValuesIndices forward_with_indices(const Tensor& x);

 private:
  Ints kernel_size_;
  MaxPoolOptions options_;
};

// The maximum of each window. x: (N, C, H, W) → (N, C, H', W').
class MaxPool2d : public Module<MaxPool2d> {
 public:
  explicit MaxPool2d(Ints kernel_size, MaxPoolOptions options = {}, Site site = Site::here());
  Tensor forward(const Tensor& x);
  // Also returns the indices of the maxima, for MaxUnpool.
  ValuesIndices forward_with_indices(const Tensor& x);

 private:
  Ints kernel_size_;
  MaxPoolOptions options_;
};

// The maximum of each window. x: (N, C, D, H, W) → (N, C, D', H', W').
class MaxPool3d : public Module<MaxPool3d> {
 public:
  explicit MaxPool3d(Ints kernel_size, MaxPoolOptions options = {}, Site site = Site::here());
  Tensor forward(const Tensor& x);
  // Also returns the indices of the maxima, for MaxUnpool.
  ValuesIndices forward_with_indices(const Tensor& x);

 private:
  Ints kernel_size_;
  MaxPoolOptions options_;
};

// The maximum of windows at random distances, as fractional_max_pool2d. x: (N, C, H, W) → (N, C,
// H', W').
class FractionalMaxPool2d : public Module<FractionalMaxPool2d> {
 public:
  explicit FractionalMaxPool2d(Ints kernel_size, FractionalMaxPoolOptions options,
                               Site site = Site::here());
  Tensor forward(const Tensor& x);
  // Also returns the indices of the maxima, for MaxUnpool.
  ValuesIndices forward_with_indices(const Tensor& x);

 private:
  Ints kernel_size_;
  FractionalMaxPoolOptions options_;
};

// The same for volumes. x: (N, C, D, H, W) → (N, C, D', H', W').
class FractionalMaxPool3d : public Module<FractionalMaxPool3d> {
 public:
  explicit FractionalMaxPool3d(Ints kernel_size, FractionalMaxPoolOptions options,
                               Site site = Site::here());
  Tensor forward(const Tensor& x);
  // Also returns the indices of the maxima, for MaxUnpool.
  ValuesIndices forward_with_indices(const Tensor& x);

 private:
  Ints kernel_size_;
  FractionalMaxPoolOptions options_;
};

// The mean of each window. x: (N, C, L) → (N, C, L').
class AvgPool1d : public Module<AvgPool1d> {
 public:
  explicit AvgPool1d(Ints kernel_size, AvgPoolOptions options = {}, Site site = Site::here());
  Tensor forward(const Tensor& x);

 private:
  Ints kernel_size_;
  AvgPoolOptions options_;
};

// The mean of each window. x: (N, C, H, W) → (N, C, H', W').
class AvgPool2d : public Module<AvgPool2d> {
 public:
  explicit AvgPool2d(Ints kernel_size, AvgPoolOptions options = {}, Site site = Site::here());
  Tensor forward(const Tensor& x);

 private:
  Ints kernel_size_;
  AvgPoolOptions options_;
};

// The mean of each window. x: (N, C, D, H, W) → (N, C, D', H', W').
class AvgPool3d : public Module<AvgPool3d> {
 public:
  explicit AvgPool3d(Ints kernel_size, AvgPoolOptions options = {}, Site site = Site::here());
  Tensor forward(const Tensor& x);

 private:
  Ints kernel_size_;
  AvgPoolOptions options_;
};

// The means of output_size windows of nearly equal size that cover x. x: (N, C, L) → (N, C,
// output_size).
class AdaptiveAvgPool1d : public Module<AdaptiveAvgPool1d> {
 public:
  explicit AdaptiveAvgPool1d(int64_t output_size, Site site = Site::here());
  Tensor forward(const Tensor& x);

 private:
  int64_t output_size_;
};

// The means of windows of nearly equal size that cover x. x: (N, C, H, W) →
// (N, C, output_size), where output_size has one or 2 numbers.
class AdaptiveAvgPool2d : public Module<AdaptiveAvgPool2d> {
 public:
  explicit AdaptiveAvgPool2d(Ints output_size, Site site = Site::here());
  Tensor forward(const Tensor& x);

 private:
  Ints output_size_;
};

// The means of windows of nearly equal size that cover x. x: (N, C, D, H, W) →
// (N, C, output_size), where output_size has one or 3 numbers.
class AdaptiveAvgPool3d : public Module<AdaptiveAvgPool3d> {
 public:
  explicit AdaptiveAvgPool3d(Ints output_size, Site site = Site::here());
  Tensor forward(const Tensor& x);

 private:
  Ints output_size_;
};

// The maxima of output_size windows of nearly equal size that cover x. x: (N, C, L) → (N, C,
// output_size).
class AdaptiveMaxPool1d : public Module<AdaptiveMaxPool1d> {
 public:
  explicit AdaptiveMaxPool1d(Ints output_size, Site site = Site::here());
  Tensor forward(const Tensor& x);
  // Also returns the indices of the maxima, for MaxUnpool.
  ValuesIndices forward_with_indices(const Tensor& x);

 private:
  Ints output_size_;
};

// The maxima of windows of nearly equal size that cover x. x: (N, C, H, W) →
// (N, C, output_size), where output_size has one or 2 numbers.
class AdaptiveMaxPool2d : public Module<AdaptiveMaxPool2d> {
 public:
  explicit AdaptiveMaxPool2d(Ints output_size, Site site = Site::here());
  Tensor forward(const Tensor& x);
  // Also returns the indices of the maxima, for MaxUnpool.
  ValuesIndices forward_with_indices(const Tensor& x);

 private:
  Ints output_size_;
};

// The maxima of windows of nearly equal size that cover x. x: (N, C, D, H, W) →
// (N, C, output_size), where output_size has one or 3 numbers.
class AdaptiveMaxPool3d : public Module<AdaptiveMaxPool3d> {
 public:
  explicit AdaptiveMaxPool3d(Ints output_size, Site site = Site::here());
  Tensor forward(const Tensor& x);
  // Also returns the indices of the maxima, for MaxUnpool.
  ValuesIndices forward_with_indices(const Tensor& x);

 private:
  Ints output_size_;
};

// Puts each element of x at its index in a tensor of zeros. x, indices: (N, C, L). Give output_size
// where several sizes pool to that of x.
class MaxUnpool1d : public Module<MaxUnpool1d> {
 public:
  explicit MaxUnpool1d(Ints kernel_size, MaxUnpoolOptions options = {}, Site site = Site::here());
  Tensor forward(const Tensor& x, const Tensor& indices, const Ints& output_size = {});

 private:
  Ints kernel_size_;
  MaxUnpoolOptions options_;
};

// Puts each element of x at its index in a tensor of zeros. x, indices: (N, C, H, W). Give
// output_size where several sizes pool to that of x.
class MaxUnpool2d : public Module<MaxUnpool2d> {
 public:
  explicit MaxUnpool2d(Ints kernel_size, MaxUnpoolOptions options = {}, Site site = Site::here());
  Tensor forward(const Tensor& x, const Tensor& indices, const Ints& output_size = {});

 private:
  Ints kernel_size_;
  MaxUnpoolOptions options_;
};

// Puts each element of x at its index in a tensor of zeros. x, indices: (N, C, D, H, W). Give
// output_size where several sizes pool to that of x.
class MaxUnpool3d : public Module<MaxUnpool3d> {
 public:
  explicit MaxUnpool3d(Ints kernel_size, MaxUnpoolOptions options = {}, Site site = Site::here());
  Tensor forward(const Tensor& x, const Tensor& indices, const Ints& output_size = {});

 private:
  Ints kernel_size_;
  MaxUnpoolOptions options_;
};

}  // namespace flow::nn
