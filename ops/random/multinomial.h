// Random positions with given weights.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace flow {

// Draws `num_samples` positions for each row of the weights p, (N, C) or (C), with probabilities
// proportional to them. Returns int64, (N, num_samples) or (num_samples). Without replacement, each
// row needs at least num_samples positive weights. Throws InvalidArgument, except in a graph, if a
// weight is negative or not finite, or if all weights of a row are zero.
Tensor multinomial(const TensorArg& p, int64_t num_samples, const MultinomialOptions& options = {});

}  // namespace flow
