// Places in sorted sequences.
#pragma once

#include <optional>

#include "core/tensor.h"

namespace flow {

struct SearchsortedOptions {
  bool out_int32 = false;
  bool right = false;  // behind equal elements instead of before them
  Tensor sorter = {};  // argsort of the sequence, which need not be sorted then
};

// How many elements of a sorted sequence come before each value: int64. The sequences lie along the
// last dim; there is one, (n), or one for each row of the values, (…, n) for (…, m).
//   searchsorted(tensor({1, 3, 5}), tensor({0, 3, 9})): 0, 1, 3
Tensor searchsorted(const TensorArg& sequence, const TensorArg& values,
                    const SearchsortedOptions& options = {});

struct BucketizeOptions {
  bool out_int32 = false;
  bool right = false;
};

// searchsorted of x in one sequence of boundaries.
Tensor bucketize(const TensorArg& x, const TensorArg& boundaries,
                 const BucketizeOptions& options = {});

}  // namespace flow
