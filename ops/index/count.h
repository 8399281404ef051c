// Different elements and how often they come. Nothing here has a gradient.
#pragma once

#include <cstdint>
#include <optional>

#include "core/tensor.h"

namespace flow {

struct UniqueResult {
  Tensor output;           // the different elements
  Tensor inverse_indices;  // where each element of x lies in output; undefined unless asked for
  Tensor counts;           // how often each element of output comes; undefined unless asked for
};

struct UniqueOptions {
  bool sorted = true;  // the result is in order either way
  bool return_inverse = false;
  bool return_counts = false;
  std::optional<int64_t> dim = {};  // compare slices along it instead of elements
};

// The different elements of x in order; each NaN differs from all others. The shape depends on
// data, so it cannot be traced.  unique(tensor({3, 1, 3})).output: 1, 3
UniqueResult unique(const TensorArg& x, const UniqueOptions& options = {});

struct UniqueConsecutiveOptions {
  bool return_inverse = false;
  bool return_counts = false;
  std::optional<int64_t> dim = {};
};

// One of each run of equal elements, in their order.
UniqueResult unique_consecutive(const TensorArg& x, const UniqueConsecutiveOptions& options = {});

struct BincountOptions {
  Tensor weights = {};  // added up in place of ones
  int64_t minlength = 0;
};

// How often each number 0 … max(x) comes in x, a vector of integers that are not negative: int64,
// with weights their sums in float32 or float64. The shape depends on data.
Tensor bincount(const TensorArg& x, const BincountOptions& options = {});

struct HistcOptions {
  int64_t bins = 100;
  double min = 0;  // both equal: the least and the largest element
  double max = 0;
};

// The number of elements in each of `bins` equal intervals from min to max, in x's floating dtype;
// others are not counted.
Tensor histc(const TensorArg& x, const HistcOptions& options = {});

}  // namespace flow
