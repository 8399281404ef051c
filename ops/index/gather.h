// Elements taken from or written to positions along one dim that a tensor of indices names.
#pragma once

#include <string>

#include "core/tensor.h"

namespace flow {

// Scalars are vectors of one element to all of these.

// y[i][j][k] = x[index[i][j][k]][j][k] for dim 0, and so on; y has the shape of index, which may be
// smaller than x in the other dims.
Tensor gather(const TensorArg& x, int64_t dim, const TensorArg& index);

// A copy of x with y[index[i][j][k]][j][k] = src[i][j][k] for dim 0, and so on; scatter_add adds.
// Index may be smaller than src, and than x in the other dims. Where an element is written twice,
// the last value in row-major order of index stays.
Tensor scatter(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& src,
               const ScatterOptions& options = {});
Tensor scatter(const TensorArg& x, int64_t dim, const TensorArg& index, const Scalar& value,
               const ScatterOptions& options = {});
Tensor scatter_add(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& src);

}  // namespace flow
