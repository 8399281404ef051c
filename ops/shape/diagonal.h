// Diagonals of matrices.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace flow {

// Returns a view of a diagonal: the elements whose index in dim2 is their index in dim1 plus
// `offset`. They form a new last dim.  diagonal(x (2, 3, 3), 0, 1, 2): (2, 3)
Tensor diagonal(const TensorArg& x, int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1);

// Returns a copy of x in which `source` replaces diagonal(x, offset, dim1, dim2). `source` has the
// shape of that diagonal.
Tensor diagonal_scatter(const TensorArg& x, const TensorArg& source, int64_t offset = 0,
                        int64_t dim1 = 0, int64_t dim2 = 1);

// The inverse of diagonal: returns zeros with the last dim of x on the given diagonal of the new
// dims dim1 and dim2, which are as small as possible.  diag_embed(x (2, 3), 1): (2, 4, 4)
Tensor diag_embed(const TensorArg& x, int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1);

// For a matrix, returns its diagonal. For a vector, returns the matrix that has this diagonal and
// zeros elsewhere.
Tensor diag(const TensorArg& x, int64_t diagonal = 0);

// The sum of the diagonal of a matrix.
Tensor trace(const TensorArg& x);

}  // namespace flow
