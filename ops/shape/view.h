// Other shapes of the same elements. Results share memory with x wherever strides can express them
// and record a gradient; writing to one writes to the other.
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor.h"

namespace flow {

// x's elements in row-major order under another shape; one size may be -1 and follows from the
// rest. Copies only where x's strides cannot express it.  reshape(x (4, 6), {2, -1}): (2, 12)
Tensor reshape(const TensorArg& x, const Shape& shape);
// As reshape, but throws InvalidArgument where it would have to copy.
Tensor view(const TensorArg& x, const Shape& shape);
Tensor view_as(const TensorArg& x, const TensorArg& other);
Tensor reshape_as(const TensorArg& x, const TensorArg& other);

// Joins dims start_dim … end_dim into one; a scalar becomes (1).
Tensor flatten(const TensorArg& x, int64_t start_dim = 0, int64_t end_dim = -1);

// Drops all dims of size 1, or dim `dim` (those of `dims`) if its size is 1.
Tensor squeeze(const TensorArg& x);
Tensor squeeze(const TensorArg& x, int64_t dim);
Tensor squeeze(const TensorArg& x, const std::vector<int64_t>& dims);
// A new dim of size 1 before `dim`, which lies in [-x.dim() - 1, x.dim()].
Tensor unsqueeze(const TensorArg& x, int64_t dim);

// Dim i of the result is dim dims[i] of x.
Tensor permute(const TensorArg& x, const Ints& dims);
Tensor transpose(const TensorArg& x, int64_t dim0, int64_t dim1);
Tensor swapaxes(const TensorArg& x, int64_t axis0, int64_t axis1);
Tensor swapdims(const TensorArg& x, int64_t dim0, int64_t dim1);
// The transpose of a matrix; vectors and scalars as they are. Requires: x.dim() <= 2.
Tensor t(const TensorArg& x);
// Dim source[i] moves to destination[i]; the other dims keep their order.
Tensor movedim(const TensorArg& x, const Ints& source, const Ints& destination);

// Dims of size 1 (and new leading ones) repeated to `shape` without copying; -1 keeps a size.
//   expand(x (3, 1), {2, 3, 4}): (2, 3, 4)
Tensor expand(const TensorArg& x, const Shape& shape);
Tensor broadcast_to(const TensorArg& x, const Shape& shape);
Tensor expand_as(const TensorArg& x, const TensorArg& other);

}  // namespace flow
