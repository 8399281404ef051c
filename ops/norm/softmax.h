// Softmax and its logarithm along one dim.
#pragma once

#include <optional>

#include "core/tensor.h"

namespace flow {

struct SoftmaxOptions {
  std::optional<DType> dtype = std::nullopt;  // x is cast to it first
};

// y = exp(x) / sum(exp(x), dim), computed from x - max(x, dim) so that nothing overflows. x:
// floating; same shape and dtype. A slice that is -inf everywhere gives NaN, as in PyTorch.
//
//   Tensor weights = softmax(scores, -1);
Tensor softmax(const TensorArg& x, int64_t dim, const SoftmaxOptions& options = {});

// y = x - log(sum(exp(x), dim)), without the detour over softmax(x).
Tensor log_softmax(const TensorArg& x, int64_t dim, const SoftmaxOptions& options = {});

}  // namespace flow
