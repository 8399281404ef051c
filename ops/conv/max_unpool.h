// The inverse of max pooling, except for the elements that were not maxima.
#pragma once

#include "core/tensor.h"

namespace flow {

struct MaxUnpoolOptions {
  Ints stride = {};
  Ints padding = 0;
  Ints output_size = {};  // within a stride of the default; may include leading dims
};

// Returns zeros with each element of x at its index in the plane. This inverts
// max_pool2d_with_indices, except that elements that were not maxima become zero. If an index
// occurs twice, the later element is kept. x and indices (int64): (N, C, H, W) or (C, H, W) ->
// (..., H', W'), H' = (H - 1) stride - 2 padding + kernel unless output_size is given. An index
// outside the plane throws InvalidArgument.
//   max_unpool2d(y.values, y.indices, 2, {.output_size = x.shape()})
Tensor max_unpool2d(const TensorArg& x, const TensorArg& indices, const Ints& kernel,
                    const MaxUnpoolOptions& options = {});
// The same for x (N, C, L) or (C, L), and for (N, C, D, H, W) or (C, D, H, W).
Tensor max_unpool1d(const TensorArg& x, const TensorArg& indices, const Ints& kernel,
                    const MaxUnpoolOptions& options = {});
Tensor max_unpool3d(const TensorArg& x, const TensorArg& indices, const Ints& kernel,
                    const MaxUnpoolOptions& options = {});

}  // namespace flow
