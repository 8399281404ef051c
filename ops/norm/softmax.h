// Softmax and its logarithm along one dim.
#pragma once

#include <optional>

#include "core/tensor.h"

namespace flow {

struct SoftmaxOptions {
  std::optional<DType> dtype = std::nullopt;  // x is cast to it first
};

// y = exp(x) / sum(exp(x), dim), computed from x - max(x, dim) so that nothing overflows. The
// result has the shape and the floating dtype of x. A slice in which every element is -inf gives
// NaN, as in PyTorch.
//
//   Tensor weights = softmax(scores, -1);
Tensor softmax(const TensorArg& x, int64_t dim, const SoftmaxOptions& options = {});

// y = x - log(sum(exp(x), dim)), computed without softmax(x) as an intermediate result.
Tensor log_softmax(const TensorArg& x, int64_t dim, const SoftmaxOptions& options = {});

}  // namespace flow
