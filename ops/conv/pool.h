// Pooling: each output is the maximum or the mean of a window of its channel.
#pragma once

#include <optional>

#include "core/tensor.h"

namespace flow {

// A single number applies to all spatial dims. An empty stride means the size of the kernel.
struct MaxPoolOptions {
  Ints stride = {};
  Ints padding = 0;  // on both sides, at most half the kernel; padding is never the maximum
  Ints dilation = 1;
  bool ceil_mode = false;  // the last window may extend past the end
};

// The maximum of each window. x: (N, C, H, W) or (C, H, W) -> (..., H', W'), H' = (H + 2 padding -
// dilation (kernel - 1) - 1) / stride + 1, rounded down, or up in ceil mode. NaN counts as the
// largest value. Every floating dtype is allowed.
//   max_pool2d(x, 2), max_pool2d(x, {3, 2})
Tensor max_pool2d(const TensorArg& x, const Ints& kernel, const MaxPoolOptions& options = {});
// The same for x (N, C, L) or (C, L).
Tensor max_pool1d(const TensorArg& x, const Ints& kernel, const MaxPoolOptions& options = {});
// Also return the position of each maximum (int64): h * W + w, or l. Among equal maxima the first
// is chosen, among NaNs the last.
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

// The same as max_pool2d, but returns the sum of each window divided by the number of its elements.
Tensor avg_pool2d(const TensorArg& x, const Ints& kernel, const AvgPoolOptions& options = {});
// The same for x (N, C, L) or (C, L). divisor_override is not allowed.
Tensor avg_pool1d(const TensorArg& x, const Ints& kernel, const AvgPoolOptions& options = {});

// x: (N, C, H, W) or (C, H, W) -> (..., size). Output i of a dim is the mean of the elements
// [floor(i in / out), ceil((i + 1) in / out)).  adaptive_avg_pool2d(x, 1): the mean of each plane
Tensor adaptive_avg_pool2d(const TensorArg& x, const Ints& size);
// The same for x (N, C, L) or (C, L).
Tensor adaptive_avg_pool1d(const TensorArg& x, const Ints& size);

// The maximum over the windows of which adaptive_avg_pool takes the mean.
Tensor adaptive_max_pool1d(const TensorArg& x, const Ints& size);
Tensor adaptive_max_pool2d(const TensorArg& x, const Ints& size);
// Also return the indices, as max_pool1d_with_indices and max_pool2d_with_indices do.
ValuesIndices adaptive_max_pool1d_with_indices(const TensorArg& x, const Ints& size);
ValuesIndices adaptive_max_pool2d_with_indices(const TensorArg& x, const Ints& size);

}  // namespace flow
