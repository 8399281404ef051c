// Functions that return the same elements in another shape. A result shares memory with x if
// strides can express it, so writing to one writes to the other. All of these functions record a
// gradient.
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor.h"

namespace flow {

// Returns the elements of x in row-major order in another shape. One size may be -1; it follows
// from the others. The elements are copied only if strides cannot express the new shape.
//   reshape(x (4, 6), {2, -1}): (2, 12)
Tensor reshape(const TensorArg& x, const Shape& shape);
// The same as reshape, but throws InvalidArgument where reshape would copy.
Tensor view(const TensorArg& x, const Shape& shape);
Tensor view_as(const TensorArg& x, const TensorArg& other);
Tensor reshape_as(const TensorArg& x, const TensorArg& other);

// Merges dims start_dim to end_dim into one. A scalar becomes a vector of shape (1).
Tensor flatten(const TensorArg& x, int64_t start_dim = 0, int64_t end_dim = -1);

// Removes all dims of size 1, or only the given dims if their size is 1.
Tensor squeeze(const TensorArg& x);
Tensor squeeze(const TensorArg& x, int64_t dim);
Tensor squeeze(const TensorArg& x, const std::vector<int64_t>& dims);
// Inserts a new dim of size 1 at position `dim`. Requires: -x.dim() - 1 <= dim <= x.dim().
Tensor unsqueeze(const TensorArg& x, int64_t dim);

// Reorders the dims: dim i of the result is dim dims[i] of x.
Tensor permute(const TensorArg& x, const Ints& dims);
Tensor transpose(const TensorArg& x, int64_t dim0, int64_t dim1);
Tensor swapaxes(const TensorArg& x, int64_t axis0, int64_t axis1);
Tensor swapdims(const TensorArg& x, int64_t dim0, int64_t dim1);
// The transpose of a matrix; vectors and scalars are returned unchanged. Requires: x.dim() <= 2.
Tensor t(const TensorArg& x);
// Moves dim source[i] to position destination[i]; the other dims keep their order.
Tensor movedim(const TensorArg& x, const Ints& source, const Ints& destination);

// Repeats dims of size 1, and new leading dims, to reach `shape` without copying. A size of -1
// keeps the size of x.
//   expand(x (3, 1), {2, 3, 4}): (2, 3, 4)
Tensor expand(const TensorArg& x, const Shape& shape);
Tensor broadcast_to(const TensorArg& x, const Shape& shape);
Tensor expand_as(const TensorArg& x, const TensorArg& other);

}  // namespace flow
