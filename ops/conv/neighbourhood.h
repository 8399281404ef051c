// Functions of neighbouring elements and channels. They are composed of other functions.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace flow {

struct LocalResponseNormOptions {
  double alpha = 1e-4;
  double beta = 0.75;
  double k = 1;
};

// x / (k + alpha m)^beta, where m is the mean of the squares of the `size` channels (dim 1) around
// each channel, with zeros beyond the first and last one (Krizhevsky et al. 2012). x: (N, C, …), at
// least 3 dims.
Tensor local_response_norm(const TensorArg& x, int64_t size,
                           const LocalResponseNormOptions& options = {});

struct LpPoolOptions {
  Ints stride = {};  // empty: the kernel's size
  bool ceil_mode = false;
};

// The power average (sum of x^norm_type)^(1 / norm_type) over windows of 1, 2 or 3 dims. An
// infinite norm_type gives the largest |x| of a window, and -inf the smallest.
Tensor lp_pool1d(const TensorArg& x, double norm_type, const Ints& kernel,
                 const LpPoolOptions& options = {});
Tensor lp_pool2d(const TensorArg& x, double norm_type, const Ints& kernel,
                 const LpPoolOptions& options = {});
Tensor lp_pool3d(const TensorArg& x, double norm_type, const Ints& kernel,
                 const LpPoolOptions& options = {});

// Divides the channels (dim 1) into `groups` parts and interleaves them (Zhang et al. 2018).
Tensor channel_shuffle(const TensorArg& x, int64_t groups);

}  // namespace flow
