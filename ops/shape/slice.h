// Parts of a tensor along one dim. Results are views of x, but for those of
// the scatters. Negative positions count from the end.
#pragma once

#include <optional>
#include <vector>

#include "core/tensor.h"

namespace flow {

// x[..., start:end:step, ...] along `dim`; positions past the ends are clamped, as in Python.
// Requires: step > 0.  slice(x (10), 0, 2, std::nullopt, 3): elements 2, 5, 8
Tensor slice(const TensorArg& x, int64_t dim, std::optional<int64_t> start = std::nullopt,
             std::optional<int64_t> end = std::nullopt, int64_t step = 1);

// `length` elements of `dim` from `start`; both must lie within x.
Tensor narrow(const TensorArg& x, int64_t dim, int64_t start, int64_t length);

// Element `index` of `dim`, which disappears.
Tensor select(const TensorArg& x, int64_t dim, int64_t index);

// A copy of x with `source` in the place of slice(x, dim, start, end, step), whose shape it has, or
// of select(x, dim, index). Same dtypes.
Tensor slice_scatter(const TensorArg& x, const TensorArg& source, int64_t dim = 0,
                     std::optional<int64_t> start = std::nullopt,
                     std::optional<int64_t> end = std::nullopt, int64_t step = 1);
Tensor select_scatter(const TensorArg& x, const TensorArg& source, int64_t dim, int64_t index);

// All elements of `dim`, each as select gives it.
std::vector<Tensor> unbind(const TensorArg& x, int64_t dim = 0);

// Parts of `split_size` elements (the last may be shorter), or of the given sizes, which must add
// up to the size of `dim`.
std::vector<Tensor> split(const TensorArg& x, int64_t split_size, int64_t dim = 0);
std::vector<Tensor> split(const TensorArg& x, const std::vector<int64_t>& sizes, int64_t dim = 0);

// At most `chunks` parts of ceil(size / chunks) elements, the last shorter, as PyTorch cuts them.
std::vector<Tensor> chunk(const TensorArg& x, int64_t chunks, int64_t dim = 0);

}  // namespace flow
