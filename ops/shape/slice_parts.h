// Where a slice and what it is cut from meet in their local parts: what its kernels copy.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/kernel.h"

namespace flow::ops {

// Some of a tensor's local part, from `data` on.
struct SlicedPart {
  std::byte* data;
  Strides strides;
};

// The local part from `first` on in `dim`, every `step`-th element.
SlicedPart sliced_part(const TensorView& tensor, int64_t dim, int64_t first, int64_t step);

// Index k of `dense` and position start + step * k of `spread` in `dim`, where both parts have
// them.
struct SharedSlice {
  SharedSlice(const TensorView& dense, const TensorView& spread, int64_t dim, int64_t start,
              int64_t step);

  Shape size;
  SlicedPart in_dense;
  SlicedPart in_spread;
};

}  // namespace flow::ops
