// Layers of neighbouring elements and channels; the formulas stand at the functions of
// ops/conv/neighbourhood.h.
#pragma once

#include "nn/module.h"
#include "ops/conv/neighbourhood.h"

namespace flow::nn {

// x: (N, C, …) → the same shape.
class LocalResponseNorm : public Module<LocalResponseNorm> {
 public:
  explicit LocalResponseNorm(int64_t size, LocalResponseNormOptions options = {})
      : size_(size), options_(options) {}

  Tensor forward(const Tensor& x);

 private:
  int64_t size_;
  LocalResponseNormOptions options_;
};

// Power averages of windows of 1, 2 or 3 dims.
class LPPool1d : public Module<LPPool1d> {
 public:
  LPPool1d(double norm_type, Ints kernel_size, LpPoolOptions options = {})
      : norm_type_(norm_type), kernel_size_(std::move(kernel_size)), options_(std::move(options)) {}

  Tensor forward(const Tensor& x);

 private:
  double norm_type_;
  Ints kernel_size_;
  LpPoolOptions options_;
};

class LPPool2d : public Module<LPPool2d> {
 public:
  LPPool2d(double norm_type, Ints kernel_size, LpPoolOptions options = {})
      : norm_type_(norm_type), kernel_size_(std::move(kernel_size)), options_(std::move(options)) {}

  Tensor forward(const Tensor& x);

 private:
  double norm_type_;
  Ints kernel_size_;
  LpPoolOptions options_;
};

class LPPool3d : public Module<LPPool3d> {
 public:
  LPPool3d(double norm_type, Ints kernel_size, LpPoolOptions options = {})
      : norm_type_(norm_type), kernel_size_(std::move(kernel_size)), options_(std::move(options)) {}

  Tensor forward(const Tensor& x);

 private:
  double norm_type_;
  Ints kernel_size_;
  LpPoolOptions options_;
};

// x: (N, C, …), channels in `groups` parts that take turns.
class ChannelShuffle : public Module<ChannelShuffle> {
 public:
  explicit ChannelShuffle(int64_t groups) : groups_(groups) {}

  Tensor forward(const Tensor& x);

 private:
  int64_t groups_;
};

}  // namespace flow::nn
