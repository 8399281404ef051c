// Windows of an image as columns, and blocks of channels as pixels.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace flow {

// One number stands for both spatial dims.
struct FoldOptions {
  Ints dilation = 1;
  Ints padding = 0;  // zeros on both sides
  Ints stride = 1;
};

// x: (N, C, H, W) or (C, H, W) -> (N, C kh kw, L): the elements under each of the L positions of a
// kernel (kh, kw), as a convolution sees them.  unfold(x (1, 2, 4, 4), 3): (1, 18, 4)
Tensor unfold(const TensorArg& x, const Ints& kernel_size, const FoldOptions& options = {});
// The adjoint: x (N, C kh kw, L) -> (N, C, output_size), elements of the same place added up.
Tensor fold(const TensorArg& x, const Ints& output_size, const Ints& kernel_size,
            const FoldOptions& options = {});

// (…, C r^2, H, W) -> (…, C, H r, W r) with r the factor, and back (Shi et al. 2016).
Tensor pixel_shuffle(const TensorArg& x, int64_t upscale_factor);
Tensor pixel_unshuffle(const TensorArg& x, int64_t downscale_factor);

}  // namespace flow
