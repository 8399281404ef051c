// Elements in order. NaN counts as larger than every number; equal elements keep their order.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace flow {

struct SortOptions {
  int64_t dim = -1;
  bool descending = false;
  bool stable = false;  // the order is stable either way
};

// x with the elements along `dim` in order, and where they stood.
ValuesIndices sort(const TensorArg& x, const SortOptions& options = {});
Tensor argsort(const TensorArg& x, const SortOptions& options = {});

struct TopkOptions {
  int64_t dim = -1;
  bool largest = true;
  bool sorted = true;  // the result is in order either way
};

// The k largest (smallest) elements along `dim`, the best first. Requires: k <= x.size(dim).
ValuesIndices topk(const TensorArg& x, int64_t k, const TopkOptions& options = {});

}  // namespace flow
