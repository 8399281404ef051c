// Functions that stack, split, rotate and repeat tensors. They are composed of views, joins and
// index ops.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace flow {

// Return x with enough dims of size 1 added to give it at least one, two or three dims. The dims
// are added in front, except that atleast_3d turns (n) into (1, n, 1) and (m, n) into (m, n, 1).
Tensor atleast_1d(const TensorArg& x);
Tensor atleast_2d(const TensorArg& x);
Tensor atleast_3d(const TensorArg& x);

// The tensors as views of the shape to which all of them broadcast.
std::vector<Tensor> broadcast_tensors(const TensorListArg& tensors);

// Concatenate tensors along the second dim (hstack; vectors along the first), the first dim
// (vstack) or the third dim (dstack), after atleast_1d, atleast_2d or atleast_3d of each.
// column_stack treats each vector as a column.  vstack({a (3), b (2, 3)}): (3, 3)
Tensor hstack(const TensorListArg& tensors);
Tensor vstack(const TensorListArg& tensors);
Tensor dstack(const TensorListArg& tensors);
Tensor column_stack(const TensorListArg& tensors);

// Returns a matrix with the given matrices along its diagonal and zeros elsewhere.
//   block_diag({a (2, 3), b (1, 1)}): (3, 4)
Tensor block_diag(const TensorListArg& tensors);

// Splits x along `dim` into views: a number is that of the parts, of which the first ones are
// larger by one element if the size is not divisible; a list has the indices before which x is cut,
// which follow the rules of slices.
//   tensor_split(x (5), 2): (3), (2);  tensor_split(x (5), {1, 4}): (1), (3), (1)
std::vector<Tensor> tensor_split(const TensorArg& x, const Sections& sections, int64_t dim = 0);

// The same as tensor_split along the second dim (hsplit; the first dim of a vector), the first
// (vsplit) or the third (dsplit).
std::vector<Tensor> hsplit(const TensorArg& x, const Sections& sections);
std::vector<Tensor> vsplit(const TensorArg& x, const Sections& sections);
std::vector<Tensor> dsplit(const TensorArg& x, const Sections& sections);

// Replaces dim `dim` by several dims with the given sizes, one of which may be -1.
//   unflatten(x (6, 2), 0, {2, -1}): (2, 3, 2)
Tensor unflatten(const TensorArg& x, int64_t dim, const Shape& sizes);

// Reverse the order of the elements along the second dim (fliplr) or the first dim (flipud).
Tensor fliplr(const TensorArg& x);
Tensor flipud(const TensorArg& x);
// Rotates x k times by 90 degrees in the direction from dims[0] to dims[1].
Tensor rot90(const TensorArg& x, int64_t k = 1, const Ints& dims = {0, 1});

struct MeshgridOptions {
  std::string indexing = "ij";  // "xy" swaps the first two dims
};

// Expands each vector to a view of the common shape, whose sizes are the lengths of all vectors:
// vector i varies along dim i.
//   meshgrid({a (2), b (3)}): (2, 3), (2, 3)
std::vector<Tensor> meshgrid(const TensorListArg& vectors, const MeshgridOptions& options = {});

// Repeats each element `repeats` times in a row along `dim`; without `dim`, x is flattened first.
//   repeat_interleave(x (2), 3): x[0], x[0], x[0], x[1], x[1], x[1]
Tensor repeat_interleave(const TensorArg& x, int64_t repeats,
                         std::optional<int64_t> dim = std::nullopt);

}  // namespace flow
