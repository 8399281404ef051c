// Searches in sorted sequences.
#pragma once

#include <optional>

#include "core/tensor.h"

namespace flow {

struct SearchsortedOptions {
  bool out_int32 = false;
  bool right = false;  // counts equal elements too
  Tensor sorter = {};  // argsort of the sequence, if the sequence is not sorted
};

// Returns the number of elements of a sorted sequence that are less than each value, as int64. The
// last dim of `sequence` is searched; it holds either one sequence (n), or one (…, n) for each row
// of values (…, m). Different dtypes are promoted.
//   searchsorted(tensor({1, 3, 5}), tensor({0, 3, 9})): 0, 1, 3
Tensor searchsorted(const TensorArg& sequence, const TensorArg& values,
                    const SearchsortedOptions& options = {});

struct BucketizeOptions {
  bool out_int32 = false;
  bool right = false;
};

// The same as searchsorted for the values x and a single sequence of boundaries.
Tensor bucketize(const TensorArg& x, const TensorArg& boundaries,
                 const BucketizeOptions& options = {});

}  // namespace flow
