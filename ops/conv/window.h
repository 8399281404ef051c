// Sliding windows of convolutions and poolings: arguments, sizes and what may be split.
#pragma once

#include <array>
#include <cstdint>

#include "core/shape.h"

namespace flow::ops {

inline constexpr int kMaxSpatialDims = 3;

// One number per spatial dim, from the front.
using SpatialInts = std::array<int64_t, kMaxSpatialDims>;

// One number for all of `num_dims` spatial dims or one each, none below `least`; unused entries are
// `unused`. Throws InvalidArgument naming `op` and `name`.
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

  // Elements from the first to the last tap.
  int64_t reach() const { return dilation * (kernel - 1) + 1; }
};

// How often a window fits into `padded` elements; 0 where it does not.
int64_t count_windows(int64_t padded, int64_t reach, int64_t stride);

// Whether balanced parts of `in` over `num_ranks` ranks (0: any number) begin where the same parts
// of `out` read first and hold all that those read.
bool splits_between_windows(const WindowDim& dim, int64_t num_ranks);

// Taps [begin, end) that output `o` has inside the input.
struct TapRange {
  int64_t begin;
  int64_t end;
};

TapRange taps_inside(const WindowDim& dim, int64_t o);

}  // namespace flow::ops
