// Finds the elements that the local parts of a slice and of the tensor it is taken from have in
// common. The kernels copy these.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/kernel.h"

namespace flow::ops {

// A strided piece of a tensor's local part that begins at `data`.
struct SlicedPart {
  std::byte* data;
  Strides strides;
};

// The elements first, first + step, … of the local part along `dim`.
SlicedPart sliced_part(const TensorView& tensor, int64_t dim, int64_t first, int64_t step);

// The elements for which one part holds index k of `dense` and the other holds position start +
// step * k of `spread` in `dim`.
struct SharedSlice {
  SharedSlice(const TensorView& dense, const TensorView& spread, int64_t dim, int64_t start,
              int64_t step);

  Shape size;
  SlicedPart in_dense;
  SlicedPart in_spread;
};

}  // namespace flow::ops
