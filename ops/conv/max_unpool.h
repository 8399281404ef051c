// The inverse of max pooling, up to the elements that were no maxima.
#pragma once

#include "core/tensor.h"

namespace flow {

struct MaxUnpoolOptions {
  Ints stride = {};
  Ints padding = 0;
  Ints output_size = {};  // less than a stride from the usual one; leading dims may stand before it
};

// Zeros with each element of x at its index in the plane, the later one where an index comes twice:
// undoes max_pool2d_with_indices but for the elements that were no maxima. x and indices (int64):
// (N, C, H, W) or (C, H, W) -> (..., H', W'), H' = (H - 1) stride - 2 padding + kernel unless
// output_size says otherwise. An index outside the plane throws InvalidArgument.
//   max_unpool2d(y.values, y.indices, 2, {.output_size = x.shape()})
Tensor max_unpool2d(const TensorArg& x, const TensorArg& indices, const Ints& kernel,
                    const MaxUnpoolOptions& options = {});
// x: (N, C, L) or (C, L); (N, C, D, H, W) or (C, D, H, W).
Tensor max_unpool1d(const TensorArg& x, const TensorArg& indices, const Ints& kernel,
                    const MaxUnpoolOptions& options = {});
Tensor max_unpool3d(const TensorArg& x, const TensorArg& indices, const Ints& kernel,
                    const MaxUnpoolOptions& options = {});

}  // namespace flow
