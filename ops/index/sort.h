// Sorting. NaN counts as larger than every number, and equal elements keep their order.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace flow {

struct SortOptions {
  int64_t dim = -1;
  bool descending = false;
  bool stable = false;  // the order is stable either way
};

// sort returns the elements of x sorted along `dim` and their indices in x; argsort returns only
// the indices.
ValuesIndices sort(const TensorArg& x, const SortOptions& options = {});
Tensor argsort(const TensorArg& x, const SortOptions& options = {});

struct TopkOptions {
  int64_t dim = -1;
  bool largest = true;
  bool sorted = true;  // the result is in order either way
};

// Returns the k largest (or smallest) elements along `dim`, the largest (smallest) first, and their
// indices. Requires: k <= x.size(dim).
ValuesIndices topk(const TensorArg& x, int64_t k, const TopkOptions& options = {});

}  // namespace flow
