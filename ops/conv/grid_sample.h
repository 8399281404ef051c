// Samples images at arbitrary positions (Jaderberg et al. 2015).
#pragma once

#include <string>

#include "core/tensor.h"

namespace flow {

struct GridSampleOptions {
  std::string mode = "bilinear";       // or "nearest", "bicubic" (4 dims only)
  std::string padding_mode = "zeros";  // values outside x: "zeros", "border" or "reflection"
  bool align_corners = false;  // -1 and 1 are the centres of the outer pixels, not their edges
};

// Samples x (N, C, H, W) at the positions in grid (N, h, w, 2) and returns (N, C, h, w). The last
// dim of grid holds the position along W, then along H, from -1 to 1. x (N, C, D, H, W) with grid
// (N, d, h, w, 3) works in the same way. x and grid have the same floating dtype. A position that
// is NaN reads nothing with zeros outside, and the first pixel otherwise.
Tensor grid_sample(const TensorArg& x, const TensorArg& grid,
                   const GridSampleOptions& options = {});

struct AffineGridOptions {
  bool align_corners = false;
};

// Returns the grid that transforms an image of `size` (N, C, H, W) by theta (N, 2, 3), or one of
// (N, C, D, H, W) by theta (N, 3, 4).
//   grid_sample(x, affine_grid(theta, x.shape()))
Tensor affine_grid(const TensorArg& theta, const Shape& size,
                   const AffineGridOptions& options = {});

}  // namespace flow
