// Reductions of the values that are scattered to one element.
#pragma once

#include <string>

#include "core/tensor.h"

namespace flow {

// The same as scatter (ops/index/gather.h), but an element that is written becomes the "sum",
// "prod", "mean" (rounded down for integers), "amax" or "amin" of the values written to it. Equal
// extrema share their gradient evenly.
//   scatter_reduce(x, 0, index, src, "amax", {.include_self = false})
Tensor scatter_reduce(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& src,
                      const std::string& reduce, const ScatterReduceOptions& options = {});

}  // namespace flow
