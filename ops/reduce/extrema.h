// The largest and smallest elements of a tensor. The result is NaN where one of the reduced
// elements is NaN. These functions throw InvalidArgument if they reduce a dim of size 0.
#pragma once

#include <cstdint>
#include <optional>

#include "core/tensor.h"
#include "ops/reduce/reduce.h"

namespace flow {

// Return the largest (amax) or smallest (amin) element over `dims`; an empty list means all dims.
// If several elements are equal to the result, its gradient is divided evenly among them.
Tensor amax(const TensorArg& x);
Tensor amax(const TensorArg& x, const Ints& dims, const KeepdimOptions& options = {});
Tensor amin(const TensorArg& x);
Tensor amin(const TensorArg& x, const Ints& dims, const KeepdimOptions& options = {});

struct AminmaxOptions {
  std::optional<int64_t> dim = {};  // unset: all dims
  bool keepdim = false;
};

struct MinMax {
  Tensor min, max;
};

// amin and amax over one dim or all.
//   auto [low, high] = aminmax(x)
MinMax aminmax(const TensorArg& x, const AminmaxOptions& options = {});

// The same as amax and amin over all dims.
Tensor max(const TensorArg& x);
Tensor min(const TensorArg& x);
// Return the largest (max) or smallest (min) element along `dim` and the index of its first
// occurrence. Only the element at that index receives the gradient.
//   auto [values, indices] = max(x, 1)
ValuesIndices max(const TensorArg& x, int64_t dim, const KeepdimOptions& options = {});
ValuesIndices min(const TensorArg& x, int64_t dim, const KeepdimOptions& options = {});

// Return the index of the first largest (argmax) or smallest (argmin) element along `dim`; without
// `dim`, the index counts in the flattened x. The dtype is int64.
Tensor argmax(const TensorArg& x);
Tensor argmax(const TensorArg& x, int64_t dim, const KeepdimOptions& options = {});
Tensor argmin(const TensorArg& x);
Tensor argmin(const TensorArg& x, int64_t dim, const KeepdimOptions& options = {});

}  // namespace flow
