// Reductions of the values that are scattered to one element.
#pragma once

#include <string>

#include "core/tensor.h"

namespace flow {

// As scatter (ops/index/gather.h), where an element that is written becomes the "sum", "prod",
// "mean" (integers: rounded down), "amax" or "amin" of the values written to it. Extrema share
// their gradient evenly.
//   scatter_reduce(x, 0, index, src, "amax", {.include_self = false})
Tensor scatter_reduce(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& src,
                      const std::string& reduce, const ScatterReduceOptions& options = {});

}  // namespace flow
