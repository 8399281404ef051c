// Finds distinct elements and counts them. None of these functions has a gradient.
#pragma once

#include <cstdint>
#include <optional>

#include "core/tensor.h"

namespace flow {

struct UniqueResult {
  Tensor output;           // the distinct elements
  Tensor inverse_indices;  // index in output of each element of x; undefined unless asked for
  Tensor counts;           // number of occurrences of each element of output, if asked for
};

struct UniqueOptions {
  bool sorted = true;  // the result is in order either way
  bool return_inverse = false;
  bool return_counts = false;
  std::optional<int64_t> dim = {};  // if set, slices along this dim are compared
};

// Returns the distinct elements of x in ascending order. Each NaN is distinct from all other
// elements. The shape of the result depends on data, so the function cannot be traced.
//   unique(tensor({3, 1, 3})).output: 1, 3
UniqueResult unique(const TensorArg& x, const UniqueOptions& options = {});

struct UniqueConsecutiveOptions {
  bool return_inverse = false;
  bool return_counts = false;
  std::optional<int64_t> dim = {};
};

// Returns the first element of each run of equal elements, in their order.
UniqueResult unique_consecutive(const TensorArg& x, const UniqueConsecutiveOptions& options = {});

struct BincountOptions {
  Tensor weights = {};  // added up instead of ones
  int64_t minlength = 0;
};

// Counts how often each number from 0 to max(x) occurs in x, a vector of nonnegative integers.
// Returns int64, or, with weights, the sums of the weights in float32 or float64. The shape of the
// result depends on data.
Tensor bincount(const TensorArg& x, const BincountOptions& options = {});

struct HistcOptions {
  int64_t bins = 100;
  double min = 0;  // if min == max: the smallest and the largest element of x
  double max = 0;
};

// The histogram of x (floating): how many elements are in each of `bins` equal intervals from min
// to max, in the dtype of x; others are not counted. Throws InvalidArgument if a range from x is
// not finite, except on CUDA devices, where nothing is counted then.
Tensor histc(const TensorArg& x, const HistcOptions& options = {});

}  // namespace flow
