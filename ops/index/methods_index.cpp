// Methods of Tensor that pick or replace elements by position or condition.
#include <string>

#include "core/tensor.h"
#include "ops/elementwise/where.h"
#include "ops/index/gather.h"
#include "ops/index/index.h"
#include "ops/index/scatter_reduce.h"
#include "ops/shape/arrange.h"
#include "ops/shape/diagonal.h"
#include "ops/shape/slice.h"

namespace flow {

Tensor Tensor::index_select(int64_t dim, const TensorArg& index) const {
  return flow::index_select(TensorArg(*this, index.site()), dim, index);
}

Tensor Tensor::masked_select(const TensorArg& mask) const {
  return flow::masked_select(TensorArg(*this, mask.site()), mask);
}

Tensor Tensor::nonzero(Site site) const {
  return flow::nonzero(TensorArg(*this, site));
}

Tensor Tensor::argwhere(Site site) const {
  return flow::argwhere(TensorArg(*this, site));
}

Tensor Tensor::take(const TensorArg& index) const {
  return flow::take(TensorArg(*this, index.site()), index);
}

Tensor Tensor::take_along_dim(const TensorArg& indices, std::optional<int64_t> dim) const {
  return flow::take_along_dim(TensorArg(*this, indices.site()), indices, dim);
}

Tensor Tensor::gather(int64_t dim, const TensorArg& index) const {
  return flow::gather(TensorArg(*this, index.site()), dim, index);
}

Tensor Tensor::scatter(int64_t dim, const TensorArg& index, const TensorArg& src) const {
  return flow::scatter(TensorArg(*this, index.site()), dim, index, src);
}

Tensor Tensor::scatter(int64_t dim, const TensorArg& index, const Scalar& value) const {
  return flow::scatter(TensorArg(*this, index.site()), dim, index, value);
}

Tensor Tensor::scatter(int64_t dim, const TensorArg& index, const TensorArg& src,
                       const ScatterOptions& options) const {
  return flow::scatter(TensorArg(*this, index.site()), dim, index, src, options);
}

Tensor Tensor::scatter(int64_t dim, const TensorArg& index, const Scalar& value,
                       const ScatterOptions& options) const {
  return flow::scatter(TensorArg(*this, index.site()), dim, index, value, options);
}

Tensor Tensor::scatter_add(int64_t dim, const TensorArg& index, const TensorArg& src) const {
  return flow::scatter_add(TensorArg(*this, index.site()), dim, index, src);
}

Tensor Tensor::scatter_reduce(int64_t dim, const TensorArg& index, const TensorArg& src,
                              const std::string& reduce) const {
  return flow::scatter_reduce(TensorArg(*this, index.site()), dim, index, src, reduce);
}

Tensor Tensor::scatter_reduce(int64_t dim, const TensorArg& index, const TensorArg& src,
                              const std::string& reduce,
                              const ScatterReduceOptions& options) const {
  return flow::scatter_reduce(TensorArg(*this, index.site()), dim, index, src, reduce, options);
}

Tensor Tensor::index_add(int64_t dim, const TensorArg& index, const TensorArg& source,
                         double alpha) const {
  return flow::index_add(TensorArg(*this, index.site()), dim, index, source, alpha);
}

Tensor Tensor::index_put(const IndexList& indices, const TensorArg& values) const {
  return flow::index_put(TensorArg(*this, values.site()), indices, values);
}

Tensor Tensor::index_put(const IndexList& indices, const TensorArg& values,
                         const IndexPutOptions& options) const {
  return flow::index_put(TensorArg(*this, values.site()), indices, values, options);
}

Tensor Tensor::slice_scatter(const TensorArg& source, int64_t dim, std::optional<int64_t> start,
                             std::optional<int64_t> end, int64_t step) const {
  return flow::slice_scatter(TensorArg(*this, source.site()), source, dim, start, end, step);
}

Tensor Tensor::select_scatter(const TensorArg& source, int64_t dim, int64_t index) const {
  return flow::select_scatter(TensorArg(*this, source.site()), source, dim, index);
}

Tensor Tensor::diagonal_scatter(const TensorArg& source, int64_t offset, int64_t dim1,
                                int64_t dim2) const {
  return flow::diagonal_scatter(TensorArg(*this, source.site()), source, offset, dim1, dim2);
}

Tensor Tensor::masked_fill(const TensorArg& mask, const Scalar& value) const {
  return flow::masked_fill(TensorArg(*this, mask.site()), mask, value);
}

Tensor Tensor::masked_fill(const TensorArg& mask, const TensorArg& value) const {
  return flow::masked_fill(TensorArg(*this, mask.site()), mask, value);
}

Tensor Tensor::where(const TensorArg& condition, const TensorArg& other) const {
  return flow::where(condition, TensorArg(*this, condition.site()), other);
}

Tensor Tensor::where(const TensorArg& condition, const Scalar& other) const {
  return flow::where(condition, TensorArg(*this, condition.site()), other);
}

}  // namespace flow
