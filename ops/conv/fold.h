// Windows of an image as columns, and blocks of channels as pixels.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace flow {

// A single number applies to both spatial dims.
struct FoldOptions {
  Ints dilation = 1;
  Ints padding = 0;  // zeros on both sides
  Ints stride = 1;
};

// Extracts windows: x (N, C, H, W) or (C, H, W) -> (N, C kh kw, L). Column l holds the elements
// under position l of a kernel (kh, kw), as a convolution reads them.  unfold(x (1, 2, 4, 4), 3):
// (1, 18, 4)
Tensor unfold(const TensorArg& x, const Ints& kernel_size, const FoldOptions& options = {});
// The adjoint of unfold: x (N, C kh kw, L) -> (N, C, output_size). Values at the same position are
// added up.
Tensor fold(const TensorArg& x, const Ints& output_size, const Ints& kernel_size,
            const FoldOptions& options = {});

// pixel_shuffle rearranges (…, C r^2, H, W) to (…, C, H r, W r), where r is the factor;
// pixel_unshuffle is its inverse (Shi et al. 2016).
Tensor pixel_shuffle(const TensorArg& x, int64_t upscale_factor);
Tensor pixel_unshuffle(const TensorArg& x, int64_t downscale_factor);

}  // namespace flow
