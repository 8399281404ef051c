// Instance normalisation.
#pragma once

#include "core/tensor.h"

namespace flow {

struct InstanceNormOptions {
  Tensor weight = {};
  Tensor bias = {};
  bool use_input_stats = true;
  double momentum = 0.1;
  double eps = 1e-5;
};

// y = (x - mean) / sqrt(var + eps) * weight + bias for each channel of each sample of x (N, C,
// ...), with mean and biased variance over all other dims, which hold more than one element; weight
// and bias: (C). With running statistics (C) given, these become (1 - momentum) old + momentum new,
// with the mean over the samples of means and unbiased variances; without use_input_stats they are
// the statistics (Ulyanov et al. 2016).
Tensor instance_norm(const TensorArg& x, const InstanceNormOptions& options = {});
Tensor instance_norm(const TensorArg& x, const TensorArg& running_mean,
                     const TensorArg& running_var, const InstanceNormOptions& options = {});

}  // namespace flow
