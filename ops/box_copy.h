// Moving boxes of elements between strided tensors: what kernels that compute nothing are made of.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/kernel.h"
#include "core/tensor_meta.h"

namespace flow::ops {

// Where a box starts and how far its neighbours lie apart, in elements.
struct BoxSource {
  const std::byte* data;
  Strides strides;
};

struct BoxTarget {
  std::byte* data;
  Strides strides;
};

// target[i] = source[i] for every index i of a box of `size` elements of `element_bytes` (1, 2, 4
// or 8) bytes each. The two must not overlap.
void copy_box(const Shape& size, const BoxTarget& target, const BoxSource& source,
              size_t element_bytes);

// All of the tensors' local parts; `target` may be given other strides.
void copy_part(const TensorView& target, const TensorView& source);
void zero_part(const TensorView& target);

// The k in `indices` with start + step * k in `positions`. Requires: step > 0.
Range indices_inside(Range indices, int64_t start, int64_t step, Range positions);

// The local part of `dim`.
Range local_range(const TensorMeta& meta, int64_t dim);

}  // namespace flow::ops
