// Positions of elements: those of triangles, and those that a flat index names.
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor.h"

namespace flow {

// The rows and columns (2, n) of the elements on and below (tril) or above (triu) a diagonal of a
// matrix (rows, columns), row by row. The dtype is int64 unless options give another.
//   tril_indices(2, 2): {{0, 1, 1}, {0, 0, 1}}
Tensor tril_indices(int64_t rows, int64_t columns, int64_t offset = 0,
                    const TensorOptions& options = {}, Site site = Site::here());
Tensor triu_indices(int64_t rows, int64_t columns, int64_t offset = 0,
                    const TensorOptions& options = {}, Site site = Site::here());

// The positions in a tensor of this shape that integer indices name in its flattened form: an int64
// tensor of the shape of `index` for each dim. Indices are not checked against the size.
//   unravel_index(tensor({7}), {3, 4}): {{1}, {3}}
std::vector<Tensor> unravel_index(const TensorArg& index, const Shape& shape);

}  // namespace flow
