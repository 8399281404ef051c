// Pooling: each output is the maximum or the mean of a window of its channel.
#pragma once

#include <optional>

#include "core/tensor.h"

namespace flow {

// One number stands for all spatial dims; an empty stride means that of the kernel.
struct MaxPoolOptions {
  Ints stride = {};
  Ints padding = 0;  // on both sides, at most half the kernel; never the maximum
  Ints dilation = 1;
  bool ceil_mode = false;  // the last window may stick out at the end
};

// x: (N, C, H, W) or (C, H, W) -> (..., H', W'),
// H' = (H + 2 padding - dilation (kernel - 1) - 1) / stride + 1, rounded down, or up in ceil mode.
// NaN counts as the largest value. Any floating dtype.  max_pool2d(x, 2), max_pool2d(x, {3, 2})
Tensor max_pool2d(const TensorArg& x, const Ints& kernel, const MaxPoolOptions& options = {});
// x: (N, C, L) or (C, L).
Tensor max_pool1d(const TensorArg& x, const Ints& kernel, const MaxPoolOptions& options = {});
// Also where each maximum lies (int64): h * W + w, or l. Of equal ones the first, of NaNs the last.
ValuesIndices max_pool2d_with_indices(const TensorArg& x, const Ints& kernel,
                                      const MaxPoolOptions& options = {});
ValuesIndices max_pool1d_with_indices(const TensorArg& x, const Ints& kernel,
                                      const MaxPoolOptions& options = {});

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

struct AvgPoolOptions {
  Ints stride = {};
  Ints padding = 0;  // zeros on both sides, at most half the kernel
  bool ceil_mode = false;
  bool count_include_pad = true;                           // padded zeros count as elements
  std::optional<int64_t> divisor_override = std::nullopt;  // instead of the number of elements
};

// As max_pool2d, with the sum of the window over the number of its elements.
Tensor avg_pool2d(const TensorArg& x, const Ints& kernel, const AvgPoolOptions& options = {});
// x: (N, C, L) or (C, L); divisor_override is refused.
Tensor avg_pool1d(const TensorArg& x, const Ints& kernel, const AvgPoolOptions& options = {});

// x: (N, C, H, W) or (C, H, W) -> (..., size): output i of a dim is the mean of
// [floor(i in / out), ceil((i + 1) in / out)).  adaptive_avg_pool2d(x, 1): the mean of each plane
Tensor adaptive_avg_pool2d(const TensorArg& x, const Ints& size);

// As the functions over planes, for x (N, C, D, H, W) or (C, D, H, W).
Tensor max_pool3d(const TensorArg& x, const Ints& kernel, const MaxPoolOptions& options = {});
Tensor avg_pool3d(const TensorArg& x, const Ints& kernel, const AvgPoolOptions& options = {});
Tensor adaptive_avg_pool1d(const TensorArg& x, const Ints& size);
Tensor adaptive_avg_pool3d(const TensorArg& x, const Ints& size);
// The maximum of the windows that adaptive_avg_pool takes the mean of.
Tensor adaptive_max_pool1d(const TensorArg& x, const Ints& size);
Tensor adaptive_max_pool2d(const TensorArg& x, const Ints& size);
Tensor adaptive_max_pool3d(const TensorArg& x, const Ints& size);
// With the indices of max_pool_with_indices; in a box d * H * W + h * W + w.
ValuesIndices max_pool3d_with_indices(const TensorArg& x, const Ints& kernel,
                                      const MaxPoolOptions& options = {});
ValuesIndices adaptive_max_pool1d_with_indices(const TensorArg& x, const Ints& size);
ValuesIndices adaptive_max_pool2d_with_indices(const TensorArg& x, const Ints& size);
ValuesIndices adaptive_max_pool3d_with_indices(const TensorArg& x, const Ints& size);

}  // namespace flow
