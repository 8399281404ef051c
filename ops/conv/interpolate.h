// Resizing by interpolation.
#pragma once

#include <string>
#include <vector>

#include "core/tensor.h"

namespace flow {

struct InterpolateOptions {
  Ints size = {};                         // sizes of the spatial dims; or
  std::vector<double> scale_factor = {};  // one factor, or one per dim: size = floor(in scale)
  std::string mode = "nearest";
  bool align_corners = false;           // not allowed for the nearest modes and area
  bool recompute_scale_factor = false;  // samples by in / out instead of 1 / scale_factor
  bool antialias = false;  // bilinear and bicubic: when shrinking, averages over the area that an
                           // output covers
};

// Resizes x (N, C, in...) with one to three spatial dims to (N, C, out...). Output i of a dim is
// sampled at s = (i + 1/2) in / out - 1/2, or at i (in - 1) / (out - 1) with align_corners:
//   "nearest"        floor(i in / out)
//   "nearest-exact"  floor((i + 1/2) in / out)
//   "linear", "bilinear", "trilinear" (by the number of dims)  the two neighbours of s, weighted
//   "bicubic"        the four nearest in each of two dims (Keys 1981, a = -3/4)
// Without recompute_scale_factor, 1 / scale_factor replaces in / out. The linear modes and
// antialias copy a dim whose size a factor does not change, as in PyTorch.
// Positions outside x read the border. With antialias, the weights are those of the kernel (a tent,
// or Keys's with a = -1/2) widened by the factor by which a dim shrinks; they sum to 1 over the
// positions inside the input.
//   interpolate(x, {.scale_factor = {2}, .mode = "bilinear"})
Tensor interpolate(const TensorArg& x, const InterpolateOptions& options);

}  // namespace flow
