// Sliding windows of convolutions and pooling: their arguments and sizes, and which dims may be
// split.
#pragma once

#include <array>
#include <cstdint>

#include "core/shape.h"

namespace flow::ops {

inline constexpr int kMaxSpatialDims = 3;

// One number per spatial dim, first dim first.
using SpatialInts = std::array<int64_t, kMaxSpatialDims>;

// Reads one number for all of `num_dims` spatial dims, or one for each; none may be below `least`.
// Unused entries are set to `unused`. Throws InvalidArgument with the names `op` and `name`.
SpatialInts spatial_numbers(const Ints& values, int64_t num_dims, int64_t least, int64_t unused,
                            const char* op, const char* name);

// A window along one dim: output o reads in[o * stride - padding + k * dilation], 0 <= k < kernel.
struct WindowDim {
  int64_t in = 1;
  int64_t out = 1;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t padding = 0;

  // The number of elements from the first to the last tap, both included.
  int64_t reach() const { return dilation * (kernel - 1) + 1; }
};

// The number of windows that fit into `padded` elements; 0 if none fits.
int64_t count_windows(int64_t padded, int64_t reach, int64_t stride);

// Returns true if each of the balanced parts of `in` over `num_ranks` ranks (0: any number) begins
// where the same part of `out` begins to read and holds all elements that this part reads.
bool splits_between_windows(const WindowDim& dim, int64_t num_ranks);

// The taps [begin, end) of output `o` that are inside the input.
struct TapRange {
  int64_t begin;
  int64_t end;
};

TapRange taps_inside(const WindowDim& dim, int64_t o);

}  // namespace flow::ops
