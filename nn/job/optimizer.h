// Optimizers of job functions.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/tensor.h"

namespace flow::optim {
class Optimizer;
}

namespace flow::job {

// A schedule: maps the step, counted from 0, to the learning rate.
using LrScheduler = std::function<double(int64_t step)>;

// A piecewise constant schedule: the rate is values[i] from step boundaries[i - 1] until
// boundaries[i] - 1.
class PiecewiseConstant {
 public:
  // Throws InvalidArgument unless boundaries ascend and there is one more value than boundaries.
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

// The update rule of optim::SGD.
class SGD {
 public:
  explicit SGD(const SGDOptions& options);

  // Declares the loss of a training function. Every step differentiates the mean of `loss` over its
  // elements and all devices, and then updates the trainable variables that the function uses. In
  // the rest of the function grad() of these variables is the gradient used for the update. Must be
  // called once, within a function of type "train", else InvalidArgument.
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

// The update rule of optim::Adam.
class Adam {
 public:
  explicit Adam(const AdamOptions& options);

  void minimize(const TensorArg& loss) const;  // see SGD::minimize

 private:
  AdamOptions options_;
};

// Any optimizer of flow::optim:
//
//   job::optimizer::Rule([](const std::vector<flow::Tensor>& variables) {
//     return std::make_unique<flow::optim::AdamW>(variables, flow::optim::AdamWOptions{});
//   }).minimize(loss);
class Rule {
 public:
  using Make = std::function<std::unique_ptr<optim::Optimizer>(const std::vector<Tensor>&)>;

  // `make` is called on every device. The schedule, if set, multiplies the learning rate of the
  // optimizer.
  explicit Rule(Make make, LrScheduler lr_scheduler = {});

  void minimize(const TensorArg& loss) const;  // see SGD::minimize

 private:
  Make make_;
  LrScheduler lr_scheduler_;
};

}  // namespace optimizer
}  // namespace flow::job
