// Diagonals of matrices.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace flow {

// A view of the elements of dims dim1 and dim2 whose index in dim2 is that in dim1 plus `offset`,
// along a new last dim.  diagonal(x (2, 3, 3), 0, 1, 2): (2, 3)
Tensor diagonal(const TensorArg& x, int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1);

// A copy of x with `source` in the place of diagonal(x, offset, dim1, dim2), whose shape it has.
Tensor diagonal_scatter(const TensorArg& x, const TensorArg& source, int64_t offset = 0,
                        int64_t dim1 = 0, int64_t dim2 = 1);

// The inverse: zeros with the last dim of x on the diagonal of new dims dim1 and dim2, as small as
// it fits.  diag_embed(x (2, 3), 1): (2, 4, 4)
Tensor diag_embed(const TensorArg& x, int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1);

// The diagonal of a matrix; of a vector, the matrix with that diagonal and zeros elsewhere.
Tensor diag(const TensorArg& x, int64_t diagonal = 0);

// The sum of the diagonal of a matrix.
Tensor trace(const TensorArg& x);

}  // namespace flow
