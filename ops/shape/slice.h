// Functions that take parts of a tensor along one dim. The results are views of x, except for
// slice_scatter and select_scatter. Negative positions count from the end.
#pragma once

#include <optional>
#include <vector>

#include "core/tensor.h"

namespace flow {

// Returns x[..., start:end:step, ...] along `dim`. Positions past the ends are clamped, as in
// Python. Requires: step > 0.  slice(x (10), 0, 2, std::nullopt, 3): elements 2, 5, 8
Tensor slice(const TensorArg& x, int64_t dim, std::optional<int64_t> start = std::nullopt,
             std::optional<int64_t> end = std::nullopt, int64_t step = 1);

// Returns `length` elements of `dim` beginning at `start`. The range must be within x.
Tensor narrow(const TensorArg& x, int64_t dim, int64_t start, int64_t length);

// Returns element `index` of `dim` and removes that dim.
Tensor select(const TensorArg& x, int64_t dim, int64_t index);

// Return a copy of x in which `source` replaces slice(x, dim, start, end, step) (slice_scatter) or
// select(x, dim, index) (select_scatter). `source` has the shape of the part it replaces and the
// dtype of x.
Tensor slice_scatter(const TensorArg& x, const TensorArg& source, int64_t dim = 0,
                     std::optional<int64_t> start = std::nullopt,
                     std::optional<int64_t> end = std::nullopt, int64_t step = 1);
Tensor select_scatter(const TensorArg& x, const TensorArg& source, int64_t dim, int64_t index);

// Returns select(x, dim, i) for every index i of `dim`.
std::vector<Tensor> unbind(const TensorArg& x, int64_t dim = 0);

// Splits x along `dim`: a number is the size of the parts, of which the last may be shorter; a list
// has the sizes of all parts, which must add up to the size of `dim`.
//   split(x (5), 2): (2), (2), (1);  split(x (5), {2, 3}): (2), (3)
std::vector<Tensor> split(const TensorArg& x, const Sections& sections, int64_t dim = 0);

// Splits x along `dim` into at most `chunks` parts of ceil(size / chunks) elements. The last part
// may be shorter, as in PyTorch.
std::vector<Tensor> chunk(const TensorArg& x, int64_t chunks, int64_t dim = 0);

}  // namespace flow
