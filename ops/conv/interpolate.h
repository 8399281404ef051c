// Resizing by interpolation.
#pragma once

#include <string>
#include <vector>

#include "core/tensor.h"

namespace flow {

struct InterpolateOptions {
  Ints size = {};                         // of the spatial dims; or
  std::vector<double> scale_factor = {};  // for all of them, or for each: size = floor(in scale)
  std::string mode = "nearest";
  bool align_corners = false;           // not for the nearest modes and area
  bool recompute_scale_factor = false;  // sample by in / out instead of 1 / scale_factor
  bool antialias = false;  // bilinear and bicubic: average over what an output of a smaller size
                           // stands for
};

// x: (N, C, in...) with one to three spatial dims -> (N, C, out...). Output i of a dim is sampled
// at s = (i + 1/2) in / out - 1/2, with align_corners at i (in - 1) / (out - 1):
//   "nearest"        floor(i in / out)
//   "nearest-exact"  floor((i + 1/2) in / out)
//   "linear", "bilinear", "trilinear" (by the number of dims)  the two neighbours of s, weighted
//   "bicubic"        the four nearest in each of two dims (Keys 1981, a = -3/4)
// Positions outside are those of the border. With antialias, weights are those of the kernel (a
// tent, or Keys's with a = -1/2) widened by the factor a dim shrinks by, and sum to 1 inside the
// input.
//   interpolate(x, {.scale_factor = {2}, .mode = "bilinear"})
Tensor interpolate(const TensorArg& x, const InterpolateOptions& options);

}  // namespace flow
