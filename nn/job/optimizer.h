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
  // all devices, and updates the trainable variables that the function uses, after the function: in
  // the rest of it their grad() is what they are updated with. Within a function of type "train",
  // once; else InvalidArgument.
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

// Any optimizer of flow::optim:
//
//   job::optimizer::Rule([](const std::vector<flow::Tensor>& variables) {
//     return std::make_unique<flow::optim::AdamW>(variables, flow::optim::AdamWOptions{});
//   }).minimize(loss);
class Rule {
 public:
  using Make = std::function<std::unique_ptr<optim::Optimizer>(const std::vector<Tensor>&)>;

  // `make` is called on every device. A schedule gives the factor of the optimizer's own rate.
  explicit Rule(Make make, LrScheduler lr_scheduler = {});

  void minimize(const TensorArg& loss) const;  // as SGD's

 private:
  Make make_;
  LrScheduler lr_scheduler_;
};

}  // namespace optimizer
}  // namespace flow::job
