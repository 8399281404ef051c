// Layers that combine neighbouring elements or channels. Each one calls the function of its name in
// ops/conv/neighbourhood.h, where the formulas are. Sizes, strides and groups below 1 and a
// norm_type of 0 are InvalidArgument.
#pragma once

#include "nn/module.h"
#include "ops/conv/neighbourhood.h"

namespace flow::nn {

// Normalises each element by the mean square of `size` neighbouring channels (Krizhevsky et al.
// 2012). x: (N, C, …) → the same shape.
class LocalResponseNorm : public Module<LocalResponseNorm> {
 public:
  explicit LocalResponseNorm(int64_t size, LocalResponseNormOptions options = {},
                             Site site = Site::here());
  Tensor forward(const Tensor& x);

 private:
  int64_t size_;
  LocalResponseNormOptions options_;
};

// Power-average pooling: (Σ x^norm_type)^(1 / norm_type) over each window. x: (N, C, L).
class LPPool1d : public Module<LPPool1d> {
 public:
  LPPool1d(double norm_type, Ints kernel_size, LpPoolOptions options = {},
           Site site = Site::here());
  Tensor forward(const Tensor& x);

 private:
  double norm_type_;
  Ints kernel_size_;
  LpPoolOptions options_;
};

// As LPPool1d over two dims. x: (N, C, H, W).
class LPPool2d : public Module<LPPool2d> {
 public:
  LPPool2d(double norm_type, Ints kernel_size, LpPoolOptions options = {},
           Site site = Site::here());
  Tensor forward(const Tensor& x);

 private:
  double norm_type_;
  Ints kernel_size_;
  LpPoolOptions options_;
};

// As LPPool1d over three dims. x: (N, C, D, H, W).
class LPPool3d : public Module<LPPool3d> {
 public:
  LPPool3d(double norm_type, Ints kernel_size, LpPoolOptions options = {},
           Site site = Site::here());
  Tensor forward(const Tensor& x);

 private:
  double norm_type_;
  Ints kernel_size_;
  LpPoolOptions options_;
};

// Divides the channels into `groups` groups and interleaves them (Zhang et al. 2018). x: (N, C, …)
// → the same shape.
class ChannelShuffle : public Module<ChannelShuffle> {
 public:
  explicit ChannelShuffle(int64_t groups, Site site = Site::here());
  Tensor forward(const Tensor& x);

 private:
  int64_t groups_;
};

}  // namespace flow::nn
