// Losses that are negative logarithms of a probability density. They are composed of other
// functions. `reduction` has the meaning it has in ops/loss/loss.h.
#pragma once

#include <string>

#include "core/tensor.h"

namespace flow {

struct PoissonNllOptions {
  bool log_input = true;
  bool full = false;  // adds Stirling's approximation of log(target!) where target > 1
  double eps = 1e-8;
  std::string reduction = "mean";
};

// exp(input) - target input with log_input, else input - target log(input + eps).
Tensor poisson_nll_loss(const TensorArg& input, const TensorArg& target,
                        const PoissonNllOptions& options = {});

struct GaussianNllOptions {
  bool full = false;  // adds log(2 π) / 2
  double eps = 1e-6;  // lower bound of the variance, even if negative; the gradient ignores this
  std::string reduction = "mean";
};

// (log(var) + (input - target)^2 / var) / 2. var is a number, or has the shape of the input, in
// which the last dim may be 1 or absent.
Tensor gaussian_nll_loss(const TensorArg& input, const TensorArg& target, const TensorArg& var,
                         const GaussianNllOptions& options = {});
Tensor gaussian_nll_loss(const TensorArg& input, const TensorArg& target, double var,
                         const GaussianNllOptions& options = {});

}  // namespace flow
