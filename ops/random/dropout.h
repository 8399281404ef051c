// Dropout.
#pragma once

#include "core/tensor.h"

namespace flow {

struct DropoutOptions {
  double p = 0.5;
  bool training = true;
};

// Sets each element to 0 with probability p, else to x / (1 - p) (Srivastava et al. 2014). Returns
// x itself when not training or if p is 0, and zeros if p is 1. Which elements become 0 depends on
// the seed and the logical element, not on the layout over ranks (core/generator.h).
//
//   Tensor y = dropout(x, {.p = 0.1, .training = is_training()});
Tensor dropout(const TensorArg& x, const DropoutOptions& options = {});

}  // namespace flow
