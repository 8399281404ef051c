// Fractional max pooling: windows whose distances are random, so that sizes shrink by any ratio
// (Graham 2014).
#pragma once

#include <vector>

#include "core/tensor.h"

namespace flow {

// Exactly one of output_size and output_ratio is given. A single number applies to all spatial
// dims.
struct FractionalMaxPoolOptions {
  Ints output_size = {};
  std::vector<double> output_ratio = {};  // of the input's size, rounded down; between 0 and 1
  // Numbers in [0, 1) that place the windows: (N, C, D), in the order w, h for planes and d, h, w
  // for volumes. Undefined: drawn. PyTorch's name is _random_samples.
  Tensor random_samples = {};
};

// The maximum of windows of size `kernel` that begin at irregular distances. With α = (H - kernel)
// / (H' - 1) and the plane's random u, window i of H' begins at ⌊(i + u) α⌋ - ⌊u α⌋, and the last
// one at H - kernel. x: (N, C, H, W) or (C, H, W) -> (..., H', W'). Among equal maxima the first
// one gets the gradient. Throws InvalidArgument if H' + kernel - 1 exceeds H. Every floating dtype
// is allowed.
Tensor fractional_max_pool2d(const TensorArg& x, const Ints& kernel,
                             const FractionalMaxPoolOptions& options);
// The same for x (N, C, D, H, W) or (C, D, H, W).
Tensor fractional_max_pool3d(const TensorArg& x, const Ints& kernel,
                             const FractionalMaxPoolOptions& options);
// Also return the position of each maximum (int64): h * W + w, or (d * H + h) * W + w.
ValuesIndices fractional_max_pool2d_with_indices(const TensorArg& x, const Ints& kernel,
                                                 const FractionalMaxPoolOptions& options);
ValuesIndices fractional_max_pool3d_with_indices(const TensorArg& x, const Ints& kernel,
                                                 const FractionalMaxPoolOptions& options);

}  // namespace flow
