// Softmax and its relatives as modules, for use in Sequential. The input and the result have the
// same shape. `dim` is the dim that is normalized; it may be negative.
#pragma once

#include <cstdint>

#include "nn/module.h"

namespace flow::nn {

// exp(x) divided by its sum along dim.
class Softmax : public Module<Softmax> {
 public:
  explicit Softmax(int64_t dim);
  Tensor forward(const Tensor& x);

 private:
  int64_t dim_;
};

// softmax(-x, dim).
class Softmin : public Module<Softmin> {
 public:
  explicit Softmin(int64_t dim);
  Tensor forward(const Tensor& x);

 private:
  int64_t dim_;
};

// The logarithm of softmax(x, dim).
class LogSoftmax : public Module<LogSoftmax> {
 public:
  explicit LogSoftmax(int64_t dim);
  Tensor forward(const Tensor& x);

 private:
  int64_t dim_;
};

// Softmax over the channels of (N, C, H, W) or (C, H, W). Another number of dims is
// InvalidArgument.
class Softmax2d : public Module<Softmax2d> {
 public:
  Tensor forward(const Tensor& x);
};

}  // namespace flow::nn
