// Op definitions of grid_sample and its gradients.
#pragma once

#include <tuple>

#include "core/op.h"
#include "ops/conv/window.h"

namespace flow::ops {

enum class GridMode : int64_t { kNearest, kBilinear, kBicubic };

// How positions outside the image are read.
enum class GridOutside : int64_t { kZeros, kBorder, kReflection };

struct GridSampleAttrs {
  GridMode mode = GridMode::kBilinear;
  GridOutside outside = GridOutside::kZeros;
  bool align_corners = false;
  // Weights are differentiated this many times by each coordinate of the grid. With these numbers,
  // the gradients of grid_sample and of its gradients are calls of the same three ops.
  SpatialInts orders{};
  SpatialInts size{};  // the logical spatial sizes of x; grid_sample_backward_x only

  static constexpr auto fields() {
    return std::tuple(
        key_field("mode", &GridSampleAttrs::mode), key_field("outside", &GridSampleAttrs::outside),
        key_field("align_corners", &GridSampleAttrs::align_corners),
        key_field("orders", &GridSampleAttrs::orders), key_field("size", &GridSampleAttrs::size));
  }
};

// x (N, C, in...), grid (N, out..., r) -> y (N, C, out...) with r spatial dims, 2 or 3:
//   y[n, c, o] = sum over pixels p of w(grid[n, o], p) x[n, c, p]
extern const OpDef kGridSample;
// dy, grid -> dx, the adjoint: dx[n, c, p] = sum over o of w(grid[n, o], p) dy[n, c, o]
extern const OpDef kGridSampleBackwardX;
// dy, x, grid -> dgrid:
//   dgrid[n, o, i] = sum over c and p of dw(grid[n, o], p) / dgrid[n, o, i] x[n, c, p] dy[n, c, o]
extern const OpDef kGridSampleBackwardGrid;

}  // namespace flow::ops
