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
// x: (N, C, L) or (C, L).
Tensor adaptive_avg_pool1d(const TensorArg& x, const Ints& size);

// The maximum of the windows that adaptive_avg_pool takes the mean of.
Tensor adaptive_max_pool1d(const TensorArg& x, const Ints& size);
Tensor adaptive_max_pool2d(const TensorArg& x, const Ints& size);
// With the indices of max_pool_with_indices.
ValuesIndices adaptive_max_pool1d_with_indices(const TensorArg& x, const Ints& size);
ValuesIndices adaptive_max_pool2d_with_indices(const TensorArg& x, const Ints& size);

}  // namespace flow
