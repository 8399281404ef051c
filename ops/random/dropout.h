// Dropout.
#pragma once

#include "core/tensor.h"

namespace flow {

struct DropoutOptions {
  double p = 0.5;
  bool training = true;
};

// Each element becomes 0 with probability p, else x / (1 - p); x itself when not training or p is
// 0, zeros when p is 1. Which elements go depends on the seed and the logical element, not on the
// layout over ranks (core/generator.h).
//
//   Tensor y = dropout(x, {.p = 0.1, .training = is_training()});
Tensor dropout(const TensorArg& x, const DropoutOptions& options = {});

}  // namespace flow
