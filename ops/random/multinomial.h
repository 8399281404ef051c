// Positions drawn by weight.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace flow {

// `num_samples` positions drawn for each row of weights p (N, C) or (C), in proportion to them:
// int64 (N, num_samples) or (num_samples). Without replacement there must be as many positive
// weights.
Tensor multinomial(const TensorArg& p, int64_t num_samples, const MultinomialOptions& options = {});

}  // namespace flow
