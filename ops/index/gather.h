// Reads and writes elements at positions along one dim that are given by a tensor of indices.
#pragma once

#include <string>

#include "core/tensor.h"

namespace flow {

// All of these functions treat a scalar as a vector of one element.

// For dim 0, y[i][j][k] = x[index[i][j][k]][j][k]; other dims follow the same pattern. y has the
// shape of index, which may be smaller than x in the other dims.
Tensor gather(const TensorArg& x, int64_t dim, const TensorArg& index);

// For dim 0, returns a copy y of x with y[index[i][j][k]][j][k] = src[i][j][k]; other dims follow
// the same pattern. scatter_add adds instead of assigning. index may be smaller than src, and
// smaller than x in the other dims. If an element is written twice, the last value in row-major
// order of index remains.
Tensor scatter(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& src,
               const ScatterOptions& options = {});
Tensor scatter(const TensorArg& x, int64_t dim, const TensorArg& index, const Scalar& value,
               const ScatterOptions& options = {});
Tensor scatter_add(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& src);

}  // namespace flow
