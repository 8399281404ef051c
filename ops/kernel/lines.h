// Iterates over the lines of a tensor along one dim, for kernels that work on whole lines.
#pragma once

#include <cstdint>

#include "core/kernel.h"

namespace flow::ops {

// Element k of a line is at offset + k * stride.
struct Line {
  int64_t offset;
  int64_t stride;
};

// Returns line `index`, in row-major order over the other dims, of a local part along `dim`. A
// scalar has one line of one element.
inline Line line_of(const TensorView& tensor, int64_t dim, int64_t index) {
  const Shape& shape = tensor.shape();
  if (shape.empty()) return {0, 1};
  Line line{0, tensor.strides()[dim]};
  for (int64_t i = shape.size() - 1; i >= 0; --i) {
    if (i == dim) continue;
    line.offset += index % shape[i] * tensor.strides()[i];
    index /= shape[i];
  }
  return line;
}

inline int64_t line_size(const TensorView& tensor, int64_t dim) {
  return tensor.shape().empty() ? 1 : tensor.shape()[dim];
}

inline int64_t num_lines(const TensorView& tensor, int64_t dim) {
  int64_t count = 1;
  for (int64_t i = 0; i < tensor.shape().size(); ++i)
    count *= i == dim ? 1 : tensor.shape()[i];
  return count;
}

}  // namespace flow::ops
