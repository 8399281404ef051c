// Optimizers of job functions.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/tensor.h"

namespace flow::job {

// The learning rate of each step, from 0 on.
using LrScheduler = std::function<double(int64_t step)>;

// values[i] from step boundaries[i - 1] to the one before boundaries[i].
class PiecewiseConstant {
 public:
  // Throws InvalidArgument unless boundaries ascend and there is one value more.
  PiecewiseConstant(std::vector<int64_t> boundaries, std::vector<double> values);

  double operator()(int64_t step) const;

 private:
  std::vector<int64_t> boundaries_;
  std::vector<double> values_;
};

namespace optimizer {

struct SGDOptions {
  LrScheduler lr_scheduler = {};
  double momentum = 0;
};

// The rule of optim::SGD.
class SGD {
 public:
  explicit SGD(const SGDOptions& options);

  // Ends a training function: every step differentiates the mean over the elements of `loss`, over
  // all devices, and updates the trainable variables that the function uses. Within a function of
  // type "train", once; else InvalidArgument.
  void minimize(const TensorArg& loss) const;

 private:
  SGDOptions options_;
};

struct AdamOptions {
  LrScheduler lr_scheduler = {};
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
};

// The rule of optim::Adam.
class Adam {
 public:
  explicit Adam(const AdamOptions& options);

  void minimize(const TensorArg& loss) const;  // as SGD's

 private:
  AdamOptions options_;
};

}  // namespace optimizer
}  // namespace flow::job
