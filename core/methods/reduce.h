// Methods that combine elements along dims: reductions, products, normalised and running values,
// order. They are defined in ops/reduce, ops/linear, ops/norm and ops/index.
#pragma once

#include <cstdint>
#include <optional>

#include "core/methods/method_family.h"
#include "core/shape.h"
#include "core/site.h"

namespace flow {

class Tensor;
class TensorArg;
struct AminmaxOptions;
struct BincountOptions;
struct CovOptions;
struct DiffOptions;
struct HistcOptions;
struct HistogramOptions;
struct HistogramResult;
struct KeepdimOptions;
struct KthvalueOptions;
struct MinMax;
struct NormOptions;
struct QuantileOptions;
struct ReduceOptions;
struct ScanOptions;
struct SoftmaxOptions;
struct SortOptions;
struct TopkOptions;
struct ValuesIndices;
struct VarOptions;

// Options of addmm and baddbmm.
struct AddmmOptions {
  double beta = 1;
  double alpha = 1;
};

// Options of cross.
struct CrossOptions {
  std::optional<int64_t> dim = {};  // a dim of size 3; unset: the first such dim
};

class ReduceMethods : public MethodFamily<ReduceMethods> {
 public:
  // ---- to one value per dim
  Tensor sum(Site site = Site::here()) const;
  Tensor sum(const Ints& dims, Site site = Site::here()) const;
  Tensor sum(const Ints& dims, const ReduceOptions& options, Site site = Site::here()) const;
  Tensor nansum(Site site = Site::here()) const;
  Tensor nansum(const Ints& dims, Site site = Site::here()) const;
  Tensor nansum(const Ints& dims, const ReduceOptions& options, Site site = Site::here()) const;
  Tensor mean(Site site = Site::here()) const;
  Tensor mean(const Ints& dims, Site site = Site::here()) const;
  Tensor mean(const Ints& dims, const ReduceOptions& options, Site site = Site::here()) const;
  Tensor nanmean(Site site = Site::here()) const;
  Tensor nanmean(const Ints& dims, Site site = Site::here()) const;
  Tensor nanmean(const Ints& dims, const ReduceOptions& options, Site site = Site::here()) const;
  Tensor prod(Site site = Site::here()) const;
  Tensor prod(int64_t dim, Site site = Site::here()) const;
  Tensor prod(int64_t dim, const ReduceOptions& options, Site site = Site::here()) const;
  Tensor max(Site site = Site::here()) const;
  ValuesIndices max(int64_t dim, Site site = Site::here()) const;
  ValuesIndices max(int64_t dim, const KeepdimOptions& options, Site site = Site::here()) const;
  Tensor min(Site site = Site::here()) const;
  ValuesIndices min(int64_t dim, Site site = Site::here()) const;
  ValuesIndices min(int64_t dim, const KeepdimOptions& options, Site site = Site::here()) const;
  Tensor amax(Site site = Site::here()) const;
  Tensor amax(const Ints& dims, Site site = Site::here()) const;
  Tensor amax(const Ints& dims, const KeepdimOptions& options, Site site = Site::here()) const;
  Tensor amin(Site site = Site::here()) const;
  Tensor amin(const Ints& dims, Site site = Site::here()) const;
  Tensor amin(const Ints& dims, const KeepdimOptions& options, Site site = Site::here()) const;
  MinMax aminmax(Site site = Site::here()) const;
  MinMax aminmax(const AminmaxOptions& options, Site site = Site::here()) const;
  Tensor argmax(Site site = Site::here()) const;
  Tensor argmax(int64_t dim, Site site = Site::here()) const;
  Tensor argmax(int64_t dim, const KeepdimOptions& options, Site site = Site::here()) const;
  Tensor argmin(Site site = Site::here()) const;
  Tensor argmin(int64_t dim, Site site = Site::here()) const;
  Tensor argmin(int64_t dim, const KeepdimOptions& options, Site site = Site::here()) const;
  Tensor any(Site site = Site::here()) const;
  Tensor any(const Ints& dims, Site site = Site::here()) const;
  Tensor any(const Ints& dims, const KeepdimOptions& options, Site site = Site::here()) const;
  Tensor all(Site site = Site::here()) const;
  Tensor all(const Ints& dims, Site site = Site::here()) const;
  Tensor all(const Ints& dims, const KeepdimOptions& options, Site site = Site::here()) const;
  Tensor count_nonzero(Site site = Site::here()) const;
  Tensor count_nonzero(const Ints& dims, Site site = Site::here()) const;
  Tensor var(Site site = Site::here()) const;
  Tensor var(const Ints& dims, Site site = Site::here()) const;
  Tensor var(const Ints& dims, const VarOptions& options, Site site = Site::here()) const;
  Tensor std(Site site = Site::here()) const;
  Tensor std(const Ints& dims, Site site = Site::here()) const;
  Tensor std(const Ints& dims, const VarOptions& options, Site site = Site::here()) const;
  Tensor norm(Site site = Site::here()) const;
  Tensor norm(const NormOptions& options, Site site = Site::here()) const;
  Tensor logsumexp(const Ints& dims, Site site = Site::here()) const;
  Tensor logsumexp(const Ints& dims, const KeepdimOptions& options, Site site = Site::here()) const;
  Tensor median(Site site = Site::here()) const;
  ValuesIndices median(int64_t dim, Site site = Site::here()) const;
  ValuesIndices median(int64_t dim, const KeepdimOptions& options, Site site = Site::here()) const;
  Tensor nanmedian(Site site = Site::here()) const;
  ValuesIndices nanmedian(int64_t dim, Site site = Site::here()) const;
  ValuesIndices nanmedian(int64_t dim, const KeepdimOptions& options,
                          Site site = Site::here()) const;
  ValuesIndices mode(int64_t dim = -1, Site site = Site::here()) const;
  ValuesIndices mode(int64_t dim, const KeepdimOptions& options, Site site = Site::here()) const;
  ValuesIndices kthvalue(int64_t k, Site site = Site::here()) const;
  ValuesIndices kthvalue(int64_t k, const KthvalueOptions& options, Site site = Site::here()) const;
  Tensor quantile(double q, Site site = Site::here()) const;
  Tensor quantile(double q, const QuantileOptions& options, Site site = Site::here()) const;
  Tensor nanquantile(double q, Site site = Site::here()) const;
  Tensor nanquantile(double q, const QuantileOptions& options, Site site = Site::here()) const;
  Tensor trace(Site site = Site::here()) const;
  Tensor corrcoef(Site site = Site::here()) const;
  Tensor cov(Site site = Site::here()) const;
  Tensor cov(const CovOptions& options, Site site = Site::here()) const;

  // ---- products
  Tensor matmul(const TensorArg& other) const;
  Tensor mm(const TensorArg& other) const;
  Tensor bmm(const TensorArg& other) const;
  Tensor mv(const TensorArg& other) const;
  Tensor dot(const TensorArg& other) const;
  Tensor outer(const TensorArg& other) const;
  Tensor inner(const TensorArg& other) const;
  Tensor dist(const TensorArg& other, double p = 2) const;
  Tensor addmm(const TensorArg& mat1, const TensorArg& mat2,
               const AddmmOptions& options = {}) const;
  Tensor baddbmm(const TensorArg& batch1, const TensorArg& batch2,
                 const AddmmOptions& options = {}) const;
  Tensor kron(const TensorArg& other) const;
  Tensor cross(const TensorArg& other, const CrossOptions& options = {}) const;

  // ---- normalised and running values along a dim
  Tensor softmax(int64_t dim, Site site = Site::here()) const;
  Tensor softmax(int64_t dim, const SoftmaxOptions& options, Site site = Site::here()) const;
  Tensor log_softmax(int64_t dim, Site site = Site::here()) const;
  Tensor log_softmax(int64_t dim, const SoftmaxOptions& options, Site site = Site::here()) const;
  Tensor renorm(double p, int64_t dim, double maxnorm, Site site = Site::here()) const;
  Tensor cumsum(int64_t dim, Site site = Site::here()) const;
  Tensor cumsum(int64_t dim, const ScanOptions& options, Site site = Site::here()) const;
  Tensor cumprod(int64_t dim, Site site = Site::here()) const;
  Tensor cumprod(int64_t dim, const ScanOptions& options, Site site = Site::here()) const;
  ValuesIndices cummax(int64_t dim, Site site = Site::here()) const;
  ValuesIndices cummin(int64_t dim, Site site = Site::here()) const;
  Tensor logcumsumexp(int64_t dim, Site site = Site::here()) const;
  Tensor diff(Site site = Site::here()) const;
  Tensor diff(const DiffOptions& options, Site site = Site::here()) const;

  // ---- order and counts
  ValuesIndices sort(Site site = Site::here()) const;
  ValuesIndices sort(const SortOptions& options, Site site = Site::here()) const;
  Tensor argsort(Site site = Site::here()) const;
  Tensor argsort(const SortOptions& options, Site site = Site::here()) const;
  ValuesIndices topk(int64_t k, Site site = Site::here()) const;
  ValuesIndices topk(int64_t k, const TopkOptions& options, Site site = Site::here()) const;
  Tensor bincount(Site site = Site::here()) const;
  Tensor bincount(const BincountOptions& options, Site site = Site::here()) const;
  Tensor histc(const HistcOptions& options, Site site = Site::here()) const;
  HistogramResult histogram(int64_t bins, Site site = Site::here()) const;
  HistogramResult histogram(int64_t bins, const HistogramOptions& options,
                            Site site = Site::here()) const;
  HistogramResult histogram(const TensorArg& bins) const;
  HistogramResult histogram(const TensorArg& bins, const HistogramOptions& options) const;
};

}  // namespace flow
