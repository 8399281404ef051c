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

// Instance normalisation (Ulyanov et al. 2016): y = (x - mean) / sqrt(var + eps) * weight + bias
// for each channel of each sample of x (N, C, ...). Mean and biased variance are taken over all
// other dims, which must hold more than one element; weight and bias: (C). Running statistics (C),
// if given, become (1 - momentum) old + momentum new, where new is the mean over the samples of the
// means or unbiased variances. Without use_input_stats the running statistics are used instead.
Tensor instance_norm(const TensorArg& x, const InstanceNormOptions& options = {});
Tensor instance_norm(const TensorArg& x, const TensorArg& running_mean,
                     const TensorArg& running_var, const InstanceNormOptions& options = {});

}  // namespace flow
