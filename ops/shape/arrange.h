// Stacking, cutting, turning and spreading, made of views, joins and picks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace flow {

// x with leading dims of size 1 where it has fewer than one or two; atleast_3d makes (n) a
// (1, n, 1) and (m, n) a (m, n, 1).
Tensor atleast_1d(const TensorArg& x);
Tensor atleast_2d(const TensorArg& x);
Tensor atleast_3d(const TensorArg& x);

// Tensors side by side along the second dim (vectors: the first), below each other along the first,
// behind each other along the third, each made atleast_1d, 2d, 3d; column_stack makes vectors
// columns.  vstack({a (3), b (2, 3)}): (3, 3)
Tensor hstack(const TensorListArg& tensors);
Tensor vstack(const TensorListArg& tensors);
Tensor dstack(const TensorListArg& tensors);
Tensor column_stack(const TensorListArg& tensors);

// Matrices along the diagonal of one, zeros elsewhere.  block_diag({a (2, 3), b (1, 1)}): (3, 4)
Tensor block_diag(const TensorListArg& tensors);

// Views of x cut along `dim` into so many parts, the first ones larger by one where sizes are
// uneven; or before each of `indices`, which count as in slices.
//   tensor_split(x (5), 2): (3), (2);  tensor_split(x (5), {1, 4}): (1), (3), (1)
std::vector<Tensor> tensor_split(const TensorArg& x, int64_t sections, int64_t dim = 0);
std::vector<Tensor> tensor_split(const TensorArg& x, const std::vector<int64_t>& indices,
                                 int64_t dim = 0);

// tensor_split along the second dim (of a vector: the first), the first, the third.
std::vector<Tensor> hsplit(const TensorArg& x, int64_t sections);
std::vector<Tensor> hsplit(const TensorArg& x, const std::vector<int64_t>& indices);
std::vector<Tensor> vsplit(const TensorArg& x, int64_t sections);
std::vector<Tensor> vsplit(const TensorArg& x, const std::vector<int64_t>& indices);
std::vector<Tensor> dsplit(const TensorArg& x, int64_t sections);
std::vector<Tensor> dsplit(const TensorArg& x, const std::vector<int64_t>& indices);

// Dim `dim` as several, of which one size may be -1.  unflatten(x (6, 2), 0, {2, -1}): (2, 3, 2)
Tensor unflatten(const TensorArg& x, int64_t dim, const Shape& sizes);

// The order reversed along the second dim, along the first.
Tensor fliplr(const TensorArg& x);
Tensor flipud(const TensorArg& x);
// Turned k times by 90 degrees from dims[0] towards dims[1].
Tensor rot90(const TensorArg& x, int64_t k = 1, const Ints& dims = {0, 1});

struct MeshgridOptions {
  std::string indexing = "ij";  // "xy": the first two dims swapped
};

// Views of the vectors, the i-th along dim i of a shape of all their lengths.
//   meshgrid({a (2), b (3)}): (2, 3), (2, 3)
std::vector<Tensor> meshgrid(const TensorListArg& vectors, const MeshgridOptions& options = {});

// Each element `repeats` times in a row along `dim`; without dim, of the flattened x.
//   repeat_interleave(x (2), 3): x[0], x[0], x[0], x[1], x[1], x[1]
Tensor repeat_interleave(const TensorArg& x, int64_t repeats,
                         std::optional<int64_t> dim = std::nullopt);

}  // namespace flow
