// Small tensors of a shape, whose elements differ.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace flow {

// float32: first, first + 1, ... in row-major order.
Tensor counting(const Shape& shape, int64_t first = 0);

// A float64 leaf that requires a gradient; element i is i^2 / 2 - 3.
Tensor leaf(const Shape& shape);

}  // namespace flow
