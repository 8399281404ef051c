// Methods of Tensor for reductions, order and running values.
#include "core/tensor.h"
#include "ops/index/sort.h"
#include "ops/reduce/extrema.h"
#include "ops/reduce/order_statistics.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/scan.h"
#include "ops/reduce/statistics.h"
#include "ops/shape/diagonal.h"

namespace flow {

Tensor Tensor::prod(Site site) const {
  return flow::prod(TensorArg(*this, site));
}

Tensor Tensor::prod(int64_t dim, Site site) const {
  return flow::prod(TensorArg(*this, site), dim);
}

Tensor Tensor::prod(int64_t dim, const ReduceOptions& options, Site site) const {
  return flow::prod(TensorArg(*this, site), dim, options);
}

ValuesIndices Tensor::max(int64_t dim, Site site) const {
  return flow::max(TensorArg(*this, site), dim);
}

ValuesIndices Tensor::max(int64_t dim, const KeepdimOptions& options, Site site) const {
  return flow::max(TensorArg(*this, site), dim, options);
}

ValuesIndices Tensor::min(int64_t dim, Site site) const {
  return flow::min(TensorArg(*this, site), dim);
}

ValuesIndices Tensor::min(int64_t dim, const KeepdimOptions& options, Site site) const {
  return flow::min(TensorArg(*this, site), dim, options);
}

Tensor Tensor::amax(Site site) const {
  return flow::amax(TensorArg(*this, site));
}

Tensor Tensor::amax(const Ints& dims, Site site) const {
  return flow::amax(TensorArg(*this, site), dims);
}

Tensor Tensor::amax(const Ints& dims, const KeepdimOptions& options, Site site) const {
  return flow::amax(TensorArg(*this, site), dims, options);
}

Tensor Tensor::amin(Site site) const {
  return flow::amin(TensorArg(*this, site));
}

Tensor Tensor::amin(const Ints& dims, Site site) const {
  return flow::amin(TensorArg(*this, site), dims);
}

Tensor Tensor::amin(const Ints& dims, const KeepdimOptions& options, Site site) const {
  return flow::amin(TensorArg(*this, site), dims, options);
}

Tensor Tensor::argmax(int64_t dim, const KeepdimOptions& options, Site site) const {
  return flow::argmax(TensorArg(*this, site), dim, options);
}

Tensor Tensor::argmin(Site site) const {
  return flow::argmin(TensorArg(*this, site));
}

Tensor Tensor::argmin(int64_t dim, Site site) const {
  return flow::argmin(TensorArg(*this, site), dim);
}

Tensor Tensor::argmin(int64_t dim, const KeepdimOptions& options, Site site) const {
  return flow::argmin(TensorArg(*this, site), dim, options);
}

Tensor Tensor::any(Site site) const {
  return flow::any(TensorArg(*this, site));
}

Tensor Tensor::any(const Ints& dims, Site site) const {
  return flow::any(TensorArg(*this, site), dims);
}

Tensor Tensor::any(const Ints& dims, const KeepdimOptions& options, Site site) const {
  return flow::any(TensorArg(*this, site), dims, options);
}

Tensor Tensor::all(Site site) const {
  return flow::all(TensorArg(*this, site));
}

Tensor Tensor::all(const Ints& dims, Site site) const {
  return flow::all(TensorArg(*this, site), dims);
}

Tensor Tensor::all(const Ints& dims, const KeepdimOptions& options, Site site) const {
  return flow::all(TensorArg(*this, site), dims, options);
}

Tensor Tensor::count_nonzero(Site site) const {
  return flow::count_nonzero(TensorArg(*this, site));
}

Tensor Tensor::count_nonzero(const Ints& dims, Site site) const {
  return flow::count_nonzero(TensorArg(*this, site), dims);
}

Tensor Tensor::nansum(Site site) const {
  return flow::nansum(TensorArg(*this, site));
}

Tensor Tensor::nansum(const Ints& dims, Site site) const {
  return flow::nansum(TensorArg(*this, site), dims);
}

Tensor Tensor::nansum(const Ints& dims, const ReduceOptions& options, Site site) const {
  return flow::nansum(TensorArg(*this, site), dims, options);
}

Tensor Tensor::nanmean(Site site) const {
  return flow::nanmean(TensorArg(*this, site));
}

Tensor Tensor::nanmean(const Ints& dims, Site site) const {
  return flow::nanmean(TensorArg(*this, site), dims);
}

Tensor Tensor::nanmean(const Ints& dims, const ReduceOptions& options, Site site) const {
  return flow::nanmean(TensorArg(*this, site), dims, options);
}

Tensor Tensor::var(Site site) const {
  return flow::var(TensorArg(*this, site));
}

Tensor Tensor::var(const Ints& dims, Site site) const {
  return flow::var(TensorArg(*this, site), dims);
}

Tensor Tensor::var(const Ints& dims, const VarOptions& options, Site site) const {
  return flow::var(TensorArg(*this, site), dims, options);
}

Tensor Tensor::std(Site site) const {
  return flow::std(TensorArg(*this, site));
}

Tensor Tensor::std(const Ints& dims, Site site) const {
  return flow::std(TensorArg(*this, site), dims);
}

Tensor Tensor::std(const Ints& dims, const VarOptions& options, Site site) const {
  return flow::std(TensorArg(*this, site), dims, options);
}

Tensor Tensor::norm(Site site) const {
  return flow::norm(TensorArg(*this, site));
}

Tensor Tensor::norm(const NormOptions& options, Site site) const {
  return flow::norm(TensorArg(*this, site), options);
}

Tensor Tensor::logsumexp(const Ints& dims, Site site) const {
  return flow::logsumexp(TensorArg(*this, site), dims);
}

Tensor Tensor::logsumexp(const Ints& dims, const KeepdimOptions& options, Site site) const {
  return flow::logsumexp(TensorArg(*this, site), dims, options);
}

Tensor Tensor::trace(Site site) const {
  return flow::trace(TensorArg(*this, site));
}

ValuesIndices Tensor::sort(Site site) const {
  return flow::sort(TensorArg(*this, site));
}

ValuesIndices Tensor::sort(const SortOptions& options, Site site) const {
  return flow::sort(TensorArg(*this, site), options);
}

Tensor Tensor::argsort(Site site) const {
  return flow::argsort(TensorArg(*this, site));
}

Tensor Tensor::argsort(const SortOptions& options, Site site) const {
  return flow::argsort(TensorArg(*this, site), options);
}

ValuesIndices Tensor::topk(int64_t k, Site site) const {
  return flow::topk(TensorArg(*this, site), k);
}

ValuesIndices Tensor::topk(int64_t k, const TopkOptions& options, Site site) const {
  return flow::topk(TensorArg(*this, site), k, options);
}

Tensor Tensor::cumsum(int64_t dim, Site site) const {
  return flow::cumsum(TensorArg(*this, site), dim);
}

Tensor Tensor::cumsum(int64_t dim, const ScanOptions& options, Site site) const {
  return flow::cumsum(TensorArg(*this, site), dim, options);
}

Tensor Tensor::cumprod(int64_t dim, Site site) const {
  return flow::cumprod(TensorArg(*this, site), dim);
}

Tensor Tensor::cumprod(int64_t dim, const ScanOptions& options, Site site) const {
  return flow::cumprod(TensorArg(*this, site), dim, options);
}

Tensor Tensor::diff(Site site) const {
  return flow::diff(TensorArg(*this, site));
}

Tensor Tensor::diff(const DiffOptions& options, Site site) const {
  return flow::diff(TensorArg(*this, site), options);
}

Tensor Tensor::median(Site site) const {
  return flow::median(TensorArg(*this, site));
}

ValuesIndices Tensor::median(int64_t dim, Site site) const {
  return flow::median(TensorArg(*this, site), dim);
}

ValuesIndices Tensor::median(int64_t dim, const KeepdimOptions& options, Site site) const {
  return flow::median(TensorArg(*this, site), dim, options);
}

Tensor Tensor::nanmedian(Site site) const {
  return flow::nanmedian(TensorArg(*this, site));
}

ValuesIndices Tensor::nanmedian(int64_t dim, Site site) const {
  return flow::nanmedian(TensorArg(*this, site), dim);
}

ValuesIndices Tensor::nanmedian(int64_t dim, const KeepdimOptions& options, Site site) const {
  return flow::nanmedian(TensorArg(*this, site), dim, options);
}

ValuesIndices Tensor::mode(int64_t dim, Site site) const {
  return flow::mode(TensorArg(*this, site), dim);
}

ValuesIndices Tensor::mode(int64_t dim, const KeepdimOptions& options, Site site) const {
  return flow::mode(TensorArg(*this, site), dim, options);
}

ValuesIndices Tensor::kthvalue(int64_t k, Site site) const {
  return flow::kthvalue(TensorArg(*this, site), k);
}

ValuesIndices Tensor::kthvalue(int64_t k, const KthvalueOptions& options, Site site) const {
  return flow::kthvalue(TensorArg(*this, site), k, options);
}

Tensor Tensor::quantile(double q, Site site) const {
  return flow::quantile(TensorArg(*this, site), q);
}

Tensor Tensor::quantile(double q, const QuantileOptions& options, Site site) const {
  return flow::quantile(TensorArg(*this, site), q, options);
}

ValuesIndices Tensor::cummax(int64_t dim, Site site) const {
  return flow::cummax(TensorArg(*this, site), dim);
}

ValuesIndices Tensor::cummin(int64_t dim, Site site) const {
  return flow::cummin(TensorArg(*this, site), dim);
}

Tensor Tensor::logcumsumexp(int64_t dim, Site site) const {
  return flow::logcumsumexp(TensorArg(*this, site), dim);
}

}  // namespace flow
