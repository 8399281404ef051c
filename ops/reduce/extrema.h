// Largest and smallest elements. NaN counts as larger and as smaller than every number. Dims
// without elements throw InvalidArgument.
#pragma once

#include <cstdint>

#include "core/tensor.h"
#include "ops/reduce/reduce.h"

namespace flow {

// The largest / smallest element over `dims` (empty: all). Elements that are equal to the result
// share its gradient evenly.
Tensor amax(const TensorArg& x);
Tensor amax(const TensorArg& x, const Ints& dims, const KeepdimOptions& options = {});
Tensor amin(const TensorArg& x);
Tensor amin(const TensorArg& x, const Ints& dims, const KeepdimOptions& options = {});

// As amax and amin over all dims.
Tensor max(const TensorArg& x);
Tensor min(const TensorArg& x);
// The largest / smallest element along `dim` and its first position there, which alone receives the
// gradient.  auto [values, indices] = max(x, 1)
ValuesIndices max(const TensorArg& x, int64_t dim, const KeepdimOptions& options = {});
ValuesIndices min(const TensorArg& x, int64_t dim, const KeepdimOptions& options = {});

// The first position of the largest / smallest element: along `dim`, or in x flattened. int64.
Tensor argmax(const TensorArg& x);
Tensor argmax(const TensorArg& x, int64_t dim, const KeepdimOptions& options = {});
Tensor argmin(const TensorArg& x);
Tensor argmin(const TensorArg& x, int64_t dim, const KeepdimOptions& options = {});

}  // namespace flow
