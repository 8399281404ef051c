// Sampling of images at any place (Jaderberg et al. 2015).
#pragma once

#include <string>

#include "core/tensor.h"

namespace flow {

struct GridSampleOptions {
  std::string mode = "bilinear";       // "nearest"; "bicubic" of 4 dims
  std::string padding_mode = "zeros";  // what lies outside: zeros, the "border", a "reflection"
  bool align_corners = false;  // -1 and 1 are the centres of the outer pixels, not their edges
};

// The values of x (N, C, H, W) at the places of grid (N, h, w, 2), which holds the position along W
// and that along H, from -1 to 1: (N, C, h, w). Of x (N, C, D, H, W) and grid (N, d, h, w, 3)
// likewise. x and grid have one floating dtype.
Tensor grid_sample(const TensorArg& x, const TensorArg& grid,
                   const GridSampleOptions& options = {});

struct AffineGridOptions {
  bool align_corners = false;
};

// The grid that turns an image of `size` (N, C, H, W) by theta (N, 2, 3), or one of (N, C, D, H, W)
// by theta (N, 3, 4).
//   grid_sample(x, affine_grid(theta, x.shape()))
Tensor affine_grid(const TensorArg& theta, const Shape& size,
                   const AffineGridOptions& options = {});

}  // namespace flow
