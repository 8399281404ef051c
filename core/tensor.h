// Tensor: a handle on a local or global tensor. Copying shares; a default-made one is undefined.
// Methods are defined in the folder that owns what they do (ops, boxing, autograd). Those that
// compute stand for the function of their name: x.f(y) is f(x, y), whose header describes it.
#pragma once

#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/scalar.h"
#include "core/shape.h"
#include "core/site.h"
#include "core/tensor_impl.h"

namespace flow {

class IndexArg;
class IndexList;
class Tensor;
class TensorArg;
struct AddOptions;
struct AddcOptions;
struct AddmmOptions;
struct BincountOptions;
struct ClampOptions;
struct CloseOptions;
struct DiffOptions;
struct DivOptions;
struct HistcOptions;
struct IndexPutOptions;
struct KeepdimOptions;
struct KthvalueOptions;
struct NanToNumOptions;
struct NormOptions;
struct QuantileOptions;
struct ReduceOptions;
struct RoundOptions;
struct ScanOptions;
struct ScatterOptions;
struct ScatterReduceOptions;
struct SoftmaxOptions;
struct SortOptions;
struct ToGlobalOptions;
struct TopkOptions;
struct ValuesIndices;
struct VarOptions;

// Layout and dtype of a tensor to be made. Fields stand in PyTorch's order.
struct TensorOptions {
  std::optional<DType> dtype = std::nullopt;  // unset: from the data, else float32
  std::string device = {};                    // "cpu", "cuda"; empty: the placement's, else cpu
  Placement placement = {};                   // undefined: local, or PlacementGuard's
  NdSbp sbp = {};
  bool requires_grad = false;
};

class Tensor {
 public:
  Tensor() = default;

  // ---- what it is (no communication)
  bool defined() const { return static_cast<bool>(impl_); }

  const flow::Shape& shape() const { return meta().shape; }

  // Size of `dim`, counted from the end when negative.
  int64_t size(int64_t dim) const;

  int64_t dim() const { return meta().shape.size(); }

  int64_t numel() const { return meta().numel; }

  DType dtype() const { return meta().dtype; }

  DeviceType device() const { return meta().device; }

  bool is_global() const { return meta().is_global(); }

  flow::Placement placement() const { return meta().placement; }

  NdSbp sbp() const { return meta().nd_sbp; }

  size_t element_size() const { return dtype_size(dtype()); }

  // Of this rank's part.
  const Strides& strides() const { return meta().strides; }

  int64_t stride(int64_t dim) const;
  int64_t storage_offset() const;

  bool is_contiguous() const { return meta().is_contiguous; }

  // ---- values (item, to_vector, full of a global tensor are collective over its placement's
  // world) The one element; InvalidArgument unless numel() is 1.
  template <class T = double>
  T item(Site site = Site::here()) const;
  // All logical elements in row-major order, converted to T.
  template <class T>
  std::vector<T> to_vector(Site site = Site::here()) const;
  // This rank's memory; InvalidArgument unless T is the dtype's C++ type. Blocked layouts become
  // strided first.
  template <class T>
  T* data() const;
  // The logical tensor as a local one, on every rank.
  Tensor full(Site site = Site::here()) const;

  // ---- layout
  Tensor to_global(const ToGlobalOptions& options, Site site = Site::here()) const;
  Tensor to_local(Site site = Site::here()) const;
  Tensor to(DType dtype, Site site = Site::here()) const;
  Tensor to(std::string_view device, Site site = Site::here()) const;
  Tensor contiguous(Site site = Site::here()) const;
  Tensor clone(Site site = Site::here()) const;
  Tensor reshape(const flow::Shape& shape, Site site = Site::here()) const;
  Tensor view(const flow::Shape& shape, Site site = Site::here()) const;
  Tensor flatten(int64_t start_dim = 0, int64_t end_dim = -1, Site site = Site::here()) const;
  Tensor squeeze(Site site = Site::here()) const;
  Tensor squeeze(int64_t dim, Site site = Site::here()) const;
  Tensor unsqueeze(int64_t dim, Site site = Site::here()) const;
  Tensor transpose(int64_t dim0, int64_t dim1, Site site = Site::here()) const;
  Tensor t(Site site = Site::here()) const;
  Tensor permute(const Ints& dims, Site site = Site::here()) const;
  Tensor expand(const flow::Shape& shape, Site site = Site::here()) const;
  Tensor narrow(int64_t dim, int64_t start, int64_t length, Site site = Site::here()) const;
  Tensor select(int64_t dim, int64_t index, Site site = Site::here()) const;
  Tensor operator[](const IndexArg& index) const;
  Tensor index(const IndexList& indices) const;
  Tensor view_as(const TensorArg& other) const;
  Tensor reshape_as(const TensorArg& other) const;
  Tensor expand_as(const TensorArg& other) const;
  Tensor broadcast_to(const flow::Shape& shape, Site site = Site::here()) const;
  Tensor unflatten(int64_t dim, const flow::Shape& sizes, Site site = Site::here()) const;
  Tensor squeeze(const std::vector<int64_t>& dims, Site site = Site::here()) const;
  Tensor swapaxes(int64_t axis0, int64_t axis1, Site site = Site::here()) const;
  Tensor swapdims(int64_t dim0, int64_t dim1, Site site = Site::here()) const;
  Tensor movedim(const Ints& source, const Ints& destination, Site site = Site::here()) const;
  Tensor diagonal(int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1,
                  Site site = Site::here()) const;
  Tensor slice(int64_t dim, std::optional<int64_t> start = std::nullopt,
               std::optional<int64_t> end = std::nullopt, int64_t step = 1,
               Site site = Site::here()) const;
  std::vector<Tensor> unbind(int64_t dim = 0, Site site = Site::here()) const;
  std::vector<Tensor> split(int64_t split_size, int64_t dim = 0, Site site = Site::here()) const;
  std::vector<Tensor> split(const std::vector<int64_t>& sizes, int64_t dim = 0,
                            Site site = Site::here()) const;
  std::vector<Tensor> chunk(int64_t chunks, int64_t dim = 0, Site site = Site::here()) const;
  std::vector<Tensor> tensor_split(int64_t sections, int64_t dim = 0,
                                   Site site = Site::here()) const;
  std::vector<Tensor> tensor_split(const std::vector<int64_t>& indices, int64_t dim = 0,
                                   Site site = Site::here()) const;

  // ---- rearranged copies
  Tensor repeat(const Ints& repeats, Site site = Site::here()) const;
  Tensor tile(const Ints& repeats, Site site = Site::here()) const;
  Tensor repeat_interleave(int64_t repeats, std::optional<int64_t> dim = std::nullopt,
                           Site site = Site::here()) const;
  Tensor flip(const Ints& dims, Site site = Site::here()) const;
  Tensor fliplr(Site site = Site::here()) const;
  Tensor flipud(Site site = Site::here()) const;
  Tensor rot90(int64_t k = 1, const Ints& dims = {0, 1}, Site site = Site::here()) const;
  Tensor roll(const Ints& shifts, const Ints& dims = {}, Site site = Site::here()) const;
  Tensor tril(int64_t diagonal = 0, Site site = Site::here()) const;
  Tensor triu(int64_t diagonal = 0, Site site = Site::here()) const;
  Tensor diag(int64_t diagonal = 0, Site site = Site::here()) const;
  Tensor diag_embed(int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1,
                    Site site = Site::here()) const;
  // Windows of `size` elements along `dim`, one every `step`, each along a new last dim: a copy.
  Tensor unfold(int64_t dim, int64_t size, int64_t step, Site site = Site::here()) const;

  // ---- others of this dtype and layout
  // In other's dtype.
  Tensor type_as(const TensorArg& other) const;
  Tensor new_empty(const flow::Shape& shape, const TensorOptions& options = {},
                   Site site = Site::here()) const;
  Tensor new_zeros(const flow::Shape& shape, const TensorOptions& options = {},
                   Site site = Site::here()) const;
  Tensor new_ones(const flow::Shape& shape, const TensorOptions& options = {},
                  Site site = Site::here()) const;
  Tensor new_full(const flow::Shape& shape, const Scalar& value, const TensorOptions& options = {},
                  Site site = Site::here()) const;

  // ---- elements by position or condition
  Tensor index_select(int64_t dim, const TensorArg& index) const;
  Tensor masked_select(const TensorArg& mask) const;
  Tensor nonzero(Site site = Site::here()) const;
  Tensor argwhere(Site site = Site::here()) const;
  Tensor take(const TensorArg& index) const;
  Tensor take_along_dim(const TensorArg& indices, std::optional<int64_t> dim = std::nullopt) const;
  Tensor gather(int64_t dim, const TensorArg& index) const;
  Tensor scatter(int64_t dim, const TensorArg& index, const TensorArg& src) const;
  Tensor scatter(int64_t dim, const TensorArg& index, const Scalar& value) const;
  Tensor scatter(int64_t dim, const TensorArg& index, const TensorArg& src,
                 const ScatterOptions& options) const;
  Tensor scatter(int64_t dim, const TensorArg& index, const Scalar& value,
                 const ScatterOptions& options) const;
  Tensor scatter_add(int64_t dim, const TensorArg& index, const TensorArg& src) const;
  Tensor scatter_reduce(int64_t dim, const TensorArg& index, const TensorArg& src,
                        const std::string& reduce) const;
  Tensor scatter_reduce(int64_t dim, const TensorArg& index, const TensorArg& src,
                        const std::string& reduce, const ScatterReduceOptions& options) const;
  Tensor index_add(int64_t dim, const TensorArg& index, const TensorArg& source,
                   double alpha = 1) const;
  Tensor index_put(const IndexList& indices, const TensorArg& values) const;
  Tensor index_put(const IndexList& indices, const TensorArg& values,
                   const IndexPutOptions& options) const;
  Tensor slice_scatter(const TensorArg& source, int64_t dim = 0,
                       std::optional<int64_t> start = std::nullopt,
                       std::optional<int64_t> end = std::nullopt, int64_t step = 1) const;
  Tensor select_scatter(const TensorArg& source, int64_t dim, int64_t index) const;
  Tensor diagonal_scatter(const TensorArg& source, int64_t offset = 0, int64_t dim1 = 0,
                          int64_t dim2 = 1) const;
  Tensor masked_fill(const TensorArg& mask, const Scalar& value) const;
  Tensor masked_fill(const TensorArg& mask, const TensorArg& value) const;
  // The elements where the condition holds, else those of other.
  Tensor where(const TensorArg& condition, const TensorArg& other) const;
  Tensor where(const TensorArg& condition, const Scalar& other) const;

  // ---- arithmetic
  Tensor add(const TensorArg& other) const;
  Tensor add(const TensorArg& other, const AddOptions& options) const;
  Tensor sub(const TensorArg& other) const;
  Tensor mul(const TensorArg& other) const;
  Tensor div(const TensorArg& other) const;
  Tensor pow(const Scalar& exponent, Site site = Site::here()) const;
  Tensor add(const Scalar& other, Site site = Site::here()) const;
  Tensor add(const Scalar& other, const AddOptions& options, Site site = Site::here()) const;
  Tensor sub(const TensorArg& other, const AddOptions& options) const;
  Tensor sub(const Scalar& other, Site site = Site::here()) const;
  Tensor sub(const Scalar& other, const AddOptions& options, Site site = Site::here()) const;
  Tensor mul(const Scalar& other, Site site = Site::here()) const;
  Tensor div(const Scalar& other, Site site = Site::here()) const;
  Tensor div(const TensorArg& other, const DivOptions& options) const;
  Tensor div(const Scalar& other, const DivOptions& options, Site site = Site::here()) const;
  Tensor pow(const TensorArg& exponent) const;
  Tensor floor_divide(const TensorArg& other) const;
  Tensor floor_divide(const Scalar& other, Site site = Site::here()) const;
  Tensor fmod(const TensorArg& other) const;
  Tensor fmod(const Scalar& other, Site site = Site::here()) const;
  Tensor remainder(const TensorArg& other) const;
  Tensor remainder(const Scalar& other, Site site = Site::here()) const;
  Tensor maximum(const TensorArg& other) const;
  Tensor maximum(const Scalar& other, Site site = Site::here()) const;
  Tensor minimum(const TensorArg& other) const;
  Tensor minimum(const Scalar& other, Site site = Site::here()) const;
  Tensor atan2(const TensorArg& other) const;
  Tensor hypot(const TensorArg& other) const;
  Tensor logaddexp(const TensorArg& other) const;
  Tensor xlogy(const TensorArg& other) const;
  Tensor xlogy(const Scalar& other, Site site = Site::here()) const;
  Tensor addcmul(const TensorArg& a, const TensorArg& b) const;
  Tensor addcmul(const TensorArg& a, const TensorArg& b, const AddcOptions& options) const;
  Tensor addcdiv(const TensorArg& a, const TensorArg& b) const;
  Tensor addcdiv(const TensorArg& a, const TensorArg& b, const AddcOptions& options) const;
  Tensor lerp(const TensorArg& end, const TensorArg& weight) const;
  Tensor lerp(const TensorArg& end, const Scalar& weight) const;

  // ---- products
  Tensor matmul(const TensorArg& other) const;
  Tensor mm(const TensorArg& other) const;
  Tensor bmm(const TensorArg& other) const;
  Tensor mv(const TensorArg& other) const;
  Tensor dot(const TensorArg& other) const;
  Tensor outer(const TensorArg& other) const;
  Tensor addmm(const TensorArg& mat1, const TensorArg& mat2) const;
  Tensor addmm(const TensorArg& mat1, const TensorArg& mat2, const AddmmOptions& options) const;
  Tensor baddbmm(const TensorArg& batch1, const TensorArg& batch2) const;
  Tensor baddbmm(const TensorArg& batch1, const TensorArg& batch2,
                 const AddmmOptions& options) const;

  // ---- functions of each element
  Tensor exp(Site site = Site::here()) const;
  Tensor log(Site site = Site::here()) const;
  Tensor sqrt(Site site = Site::here()) const;
  Tensor abs(Site site = Site::here()) const;
  Tensor neg(Site site = Site::here()) const;
  Tensor relu(Site site = Site::here()) const;
  Tensor tanh(Site site = Site::here()) const;
  Tensor sigmoid(Site site = Site::here()) const;
  Tensor sign(Site site = Site::here()) const;
  Tensor square(Site site = Site::here()) const;
  Tensor floor(Site site = Site::here()) const;
  Tensor ceil(Site site = Site::here()) const;
  Tensor round(Site site = Site::here()) const;
  Tensor round(const RoundOptions& options, Site site = Site::here()) const;
  Tensor trunc(Site site = Site::here()) const;
  Tensor frac(Site site = Site::here()) const;
  Tensor exp2(Site site = Site::here()) const;
  Tensor expm1(Site site = Site::here()) const;
  Tensor log2(Site site = Site::here()) const;
  Tensor log10(Site site = Site::here()) const;
  Tensor log1p(Site site = Site::here()) const;
  Tensor rsqrt(Site site = Site::here()) const;
  Tensor reciprocal(Site site = Site::here()) const;
  Tensor sin(Site site = Site::here()) const;
  Tensor cos(Site site = Site::here()) const;
  Tensor tan(Site site = Site::here()) const;
  Tensor asin(Site site = Site::here()) const;
  Tensor acos(Site site = Site::here()) const;
  Tensor atan(Site site = Site::here()) const;
  Tensor sinh(Site site = Site::here()) const;
  Tensor cosh(Site site = Site::here()) const;
  Tensor asinh(Site site = Site::here()) const;
  Tensor acosh(Site site = Site::here()) const;
  Tensor atanh(Site site = Site::here()) const;
  Tensor erf(Site site = Site::here()) const;
  Tensor erfc(Site site = Site::here()) const;
  Tensor erfinv(Site site = Site::here()) const;
  Tensor lgamma(Site site = Site::here()) const;
  Tensor digamma(Site site = Site::here()) const;
  Tensor sinc(Site site = Site::here()) const;
  Tensor clamp(const ClampOptions& options, Site site = Site::here()) const;
  Tensor clamp(const TensorArg& min, const TensorArg& max) const;
  Tensor clip(const ClampOptions& options, Site site = Site::here()) const;
  Tensor nan_to_num(Site site = Site::here()) const;
  Tensor nan_to_num(const NanToNumOptions& options, Site site = Site::here()) const;
  Tensor softmax(int64_t dim, Site site = Site::here()) const;
  Tensor softmax(int64_t dim, const SoftmaxOptions& options, Site site = Site::here()) const;
  Tensor log_softmax(int64_t dim, Site site = Site::here()) const;
  Tensor log_softmax(int64_t dim, const SoftmaxOptions& options, Site site = Site::here()) const;
  Tensor bernoulli(Site site = Site::here()) const;

  // ---- comparisons and logic
  Tensor eq(const TensorArg& other) const;
  Tensor eq(const Scalar& other, Site site = Site::here()) const;
  Tensor ne(const TensorArg& other) const;
  Tensor ne(const Scalar& other, Site site = Site::here()) const;
  Tensor lt(const TensorArg& other) const;
  Tensor lt(const Scalar& other, Site site = Site::here()) const;
  Tensor le(const TensorArg& other) const;
  Tensor le(const Scalar& other, Site site = Site::here()) const;
  Tensor gt(const TensorArg& other) const;
  Tensor gt(const Scalar& other, Site site = Site::here()) const;
  Tensor ge(const TensorArg& other) const;
  Tensor ge(const Scalar& other, Site site = Site::here()) const;
  Tensor logical_and(const TensorArg& other) const;
  Tensor logical_or(const TensorArg& other) const;
  Tensor logical_xor(const TensorArg& other) const;
  Tensor logical_not(Site site = Site::here()) const;
  Tensor bitwise_and(const TensorArg& other) const;
  Tensor bitwise_and(const Scalar& other, Site site = Site::here()) const;
  Tensor bitwise_or(const TensorArg& other) const;
  Tensor bitwise_or(const Scalar& other, Site site = Site::here()) const;
  Tensor bitwise_xor(const TensorArg& other) const;
  Tensor bitwise_xor(const Scalar& other, Site site = Site::here()) const;
  Tensor bitwise_left_shift(const TensorArg& other) const;
  Tensor bitwise_left_shift(const Scalar& other, Site site = Site::here()) const;
  Tensor bitwise_right_shift(const TensorArg& other) const;
  Tensor bitwise_right_shift(const Scalar& other, Site site = Site::here()) const;
  Tensor bitwise_not(Site site = Site::here()) const;
  Tensor isnan(Site site = Site::here()) const;
  Tensor isinf(Site site = Site::here()) const;
  Tensor isfinite(Site site = Site::here()) const;
  Tensor isclose(const TensorArg& other) const;
  Tensor isclose(const TensorArg& other, const CloseOptions& options) const;
  bool allclose(const TensorArg& other) const;
  bool allclose(const TensorArg& other, const CloseOptions& options) const;
  bool equal(const TensorArg& other) const;

  // ---- reductions
  Tensor sum(Site site = Site::here()) const;
  Tensor sum(const Ints& dims, Site site = Site::here()) const;
  Tensor sum(const Ints& dims, const ReduceOptions& options, Site site = Site::here()) const;
  Tensor mean(Site site = Site::here()) const;
  Tensor mean(const Ints& dims, Site site = Site::here()) const;
  Tensor mean(const Ints& dims, const ReduceOptions& options, Site site = Site::here()) const;
  Tensor max(Site site = Site::here()) const;
  Tensor min(Site site = Site::here()) const;
  Tensor argmax(Site site = Site::here()) const;
  Tensor argmax(int64_t dim, Site site = Site::here()) const;
  Tensor prod(Site site = Site::here()) const;
  Tensor prod(int64_t dim, Site site = Site::here()) const;
  Tensor prod(int64_t dim, const ReduceOptions& options, Site site = Site::here()) const;
  ValuesIndices max(int64_t dim, Site site = Site::here()) const;
  ValuesIndices max(int64_t dim, const KeepdimOptions& options, Site site = Site::here()) const;
  ValuesIndices min(int64_t dim, Site site = Site::here()) const;
  ValuesIndices min(int64_t dim, const KeepdimOptions& options, Site site = Site::here()) const;
  Tensor amax(Site site = Site::here()) const;
  Tensor amax(const Ints& dims, Site site = Site::here()) const;
  Tensor amax(const Ints& dims, const KeepdimOptions& options, Site site = Site::here()) const;
  Tensor amin(Site site = Site::here()) const;
  Tensor amin(const Ints& dims, Site site = Site::here()) const;
  Tensor amin(const Ints& dims, const KeepdimOptions& options, Site site = Site::here()) const;
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
  Tensor nansum(Site site = Site::here()) const;
  Tensor nansum(const Ints& dims, Site site = Site::here()) const;
  Tensor nansum(const Ints& dims, const ReduceOptions& options, Site site = Site::here()) const;
  Tensor nanmean(Site site = Site::here()) const;
  Tensor nanmean(const Ints& dims, Site site = Site::here()) const;
  Tensor nanmean(const Ints& dims, const ReduceOptions& options, Site site = Site::here()) const;
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
  Tensor trace(Site site = Site::here()) const;

  // ---- order and running values
  ValuesIndices sort(Site site = Site::here()) const;
  ValuesIndices sort(const SortOptions& options, Site site = Site::here()) const;
  Tensor argsort(Site site = Site::here()) const;
  Tensor argsort(const SortOptions& options, Site site = Site::here()) const;
  ValuesIndices topk(int64_t k, Site site = Site::here()) const;
  ValuesIndices topk(int64_t k, const TopkOptions& options, Site site = Site::here()) const;
  Tensor cumsum(int64_t dim, Site site = Site::here()) const;
  Tensor cumsum(int64_t dim, const ScanOptions& options, Site site = Site::here()) const;
  Tensor cumprod(int64_t dim, Site site = Site::here()) const;
  Tensor cumprod(int64_t dim, const ScanOptions& options, Site site = Site::here()) const;
  ValuesIndices cummax(int64_t dim, Site site = Site::here()) const;
  ValuesIndices cummin(int64_t dim, Site site = Site::here()) const;
  Tensor logcumsumexp(int64_t dim, Site site = Site::here()) const;
  Tensor diff(Site site = Site::here()) const;
  Tensor diff(const DiffOptions& options, Site site = Site::here()) const;
  Tensor bincount(Site site = Site::here()) const;
  Tensor bincount(const BincountOptions& options, Site site = Site::here()) const;
  Tensor histc(const HistcOptions& options, Site site = Site::here()) const;

  // ---- in place: the handle and all views of its storage see the change; returns *this
  const Tensor& add_(const TensorArg& other) const;
  const Tensor& add_(const TensorArg& other, const AddOptions& options) const;
  const Tensor& add_(const Scalar& other, Site site = Site::here()) const;
  const Tensor& sub_(const TensorArg& other) const;
  const Tensor& sub_(const Scalar& other, Site site = Site::here()) const;
  const Tensor& mul_(const TensorArg& other) const;
  const Tensor& mul_(const Scalar& other, Site site = Site::here()) const;
  const Tensor& div_(const TensorArg& other) const;
  const Tensor& div_(const Scalar& other, Site site = Site::here()) const;
  const Tensor& copy_(const TensorArg& source) const;
  const Tensor& fill_(const Scalar& value, Site site = Site::here()) const;
  const Tensor& zero_(Site site = Site::here()) const;
  const Tensor& uniform_(double from = 0, double to = 1, Site site = Site::here()) const;
  const Tensor& normal_(double mean = 0, double std = 1, Site site = Site::here()) const;
  const Tensor& neg_(Site site = Site::here()) const;
  const Tensor& abs_(Site site = Site::here()) const;
  const Tensor& sign_(Site site = Site::here()) const;
  const Tensor& square_(Site site = Site::here()) const;
  const Tensor& floor_(Site site = Site::here()) const;
  const Tensor& ceil_(Site site = Site::here()) const;
  const Tensor& round_(Site site = Site::here()) const;
  const Tensor& trunc_(Site site = Site::here()) const;
  const Tensor& frac_(Site site = Site::here()) const;
  const Tensor& exp_(Site site = Site::here()) const;
  const Tensor& exp2_(Site site = Site::here()) const;
  const Tensor& expm1_(Site site = Site::here()) const;
  const Tensor& log_(Site site = Site::here()) const;
  const Tensor& log2_(Site site = Site::here()) const;
  const Tensor& log10_(Site site = Site::here()) const;
  const Tensor& log1p_(Site site = Site::here()) const;
  const Tensor& sqrt_(Site site = Site::here()) const;
  const Tensor& rsqrt_(Site site = Site::here()) const;
  const Tensor& reciprocal_(Site site = Site::here()) const;
  const Tensor& sin_(Site site = Site::here()) const;
  const Tensor& cos_(Site site = Site::here()) const;
  const Tensor& tan_(Site site = Site::here()) const;
  const Tensor& tanh_(Site site = Site::here()) const;
  const Tensor& erf_(Site site = Site::here()) const;
  const Tensor& erfc_(Site site = Site::here()) const;
  const Tensor& sigmoid_(Site site = Site::here()) const;
  const Tensor& relu_(Site site = Site::here()) const;
  const Tensor& clamp_(const ClampOptions& options, Site site = Site::here()) const;
  const Tensor& clamp_min_(const Scalar& min, Site site = Site::here()) const;
  const Tensor& clamp_max_(const Scalar& max, Site site = Site::here()) const;
  const Tensor& masked_fill_(const TensorArg& mask, const Scalar& value) const;
  const Tensor& sub_(const TensorArg& other, const AddOptions& options) const;
  const Tensor& div_(const TensorArg& other, const DivOptions& options) const;
  const Tensor& div_(const Scalar& other, const DivOptions& options,
                     Site site = Site::here()) const;
  const Tensor& pow_(const TensorArg& exponent) const;
  const Tensor& pow_(const Scalar& exponent, Site site = Site::here()) const;
  const Tensor& fmod_(const TensorArg& other) const;
  const Tensor& fmod_(const Scalar& other, Site site = Site::here()) const;
  const Tensor& remainder_(const TensorArg& other) const;
  const Tensor& remainder_(const Scalar& other, Site site = Site::here()) const;
  const Tensor& floor_divide_(const TensorArg& other) const;
  const Tensor& floor_divide_(const Scalar& other, Site site = Site::here()) const;
  const Tensor& addcmul_(const TensorArg& a, const TensorArg& b) const;
  const Tensor& addcmul_(const TensorArg& a, const TensorArg& b, const AddcOptions& options) const;
  const Tensor& addcdiv_(const TensorArg& a, const TensorArg& b) const;
  const Tensor& addcdiv_(const TensorArg& a, const TensorArg& b, const AddcOptions& options) const;
  const Tensor& lerp_(const TensorArg& end, const TensorArg& weight) const;
  const Tensor& lerp_(const TensorArg& end, const Scalar& weight) const;
  const Tensor& tril_(int64_t diagonal = 0, Site site = Site::here()) const;
  const Tensor& triu_(int64_t diagonal = 0, Site site = Site::here()) const;
  const Tensor& index_put_(const IndexList& indices, const TensorArg& values) const;
  const Tensor& index_put_(const IndexList& indices, const TensorArg& values,
                           const IndexPutOptions& options) const;
  const Tensor& index_put_(const IndexList& indices, const Scalar& value,
                           Site site = Site::here()) const;
  const Tensor& index_add_(int64_t dim, const TensorArg& index, const TensorArg& source,
                           double alpha = 1) const;
  const Tensor& scatter_(int64_t dim, const TensorArg& index, const TensorArg& src) const;
  const Tensor& scatter_(int64_t dim, const TensorArg& index, const Scalar& value) const;
  const Tensor& scatter_add_(int64_t dim, const TensorArg& index, const TensorArg& src) const;
  const Tensor& bernoulli_(double p = 0.5, Site site = Site::here()) const;
  const Tensor& squeeze_(Site site = Site::here()) const;
  const Tensor& squeeze_(int64_t dim, Site site = Site::here()) const;
  const Tensor& unsqueeze_(int64_t dim, Site site = Site::here()) const;
  const Tensor& transpose_(int64_t dim0, int64_t dim1, Site site = Site::here()) const;
  const Tensor& t_(Site site = Site::here()) const;

  // ---- autograd
  bool requires_grad() const { return impl().tracks_grad(); }

  const Tensor& requires_grad_(bool requires_grad = true) const;

  // True for a tensor made by the user (or one that records nothing).
  bool is_leaf() const { return !impl().grad_fn && impl().requires_grad == requires_grad(); }

  // The accumulated gradient; undefined when there is none.
  Tensor grad() const;
  void set_grad(const Tensor& grad) const;
  // Keeps the gradient of a non-leaf in grad() at the next backward.
  void retain_grad() const;
  // Called with the gradient of this tensor during backward; a defined result replaces it.
  // Returns a number for remove_hook.
  int64_t register_hook(std::function<Tensor(const Tensor&)> hook) const;
  void remove_hook(int64_t handle) const;
  // Shares storage, records nothing.
  Tensor detach() const;
  // Takes over value, placement and layout of `other`; the handle and its grad stay.
  void set_data(const Tensor& other) const;
  void backward(Site site = Site::here()) const;
  void backward(const TensorArg& gradient) const;

  // ---- for the library's folders
  explicit Tensor(Ref<TensorImpl> impl) : impl_(std::move(impl)) {}

  static Tensor make(MetaPtr meta, Ref<Storage> storage, int64_t offset = 0) {
    return Tensor(make_ref<TensorImpl>(meta, std::move(storage), offset));
  }

  TensorImpl& impl() const {
    if (!impl_) [[unlikely]]
      throw_undefined();
    return *impl_;
  }

  const TensorMeta& meta() const { return *impl().meta; }

  MetaPtr meta_ptr() const { return impl().meta; }

  // Turns a blocked layout of this rank's part into a strided one, in place.
  void make_strided() const;

  // True when both are the same handle's target.
  bool is_same(const Tensor& other) const { return impl_ == other.impl_; }

 private:
  [[noreturn]] static void throw_undefined();
  Ref<TensorImpl> impl_;
};

// Elements and where they lie: of max over a dim, sort, topk, pooling with indices.
struct ValuesIndices {
  Tensor values, indices;
};

// A tensor and where it was passed: what public ops take. Lives for one call, so it is neither
// stored nor default-made.
class TensorArg {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): a tensor is an argument
  TensorArg(const Tensor& tensor, const char* file = __builtin_FILE(),
            uint32_t line = __builtin_LINE())
      : tensor_(&tensor), file_(file), line_(line) {}

  TensorArg(const Tensor& tensor, Site site) : TensorArg(tensor, site.file(), site.line()) {}

  operator const Tensor&() const { return *tensor_; }  // NOLINT(google-explicit-constructor)

  const Tensor& tensor() const { return *tensor_; }

  const Tensor* operator->() const { return tensor_; }

  Site site() const { return Site(Site::Key(), file_, line_); }

 private:
  const Tensor* tensor_;
  const char* file_;
  uint32_t line_;
};

// The number on the right of `x += 2`, with its place.
struct ScalarArg {
  template <class T>

  // NOLINTNEXTLINE(google-explicit-constructor)
  requires std::is_arithmetic_v<T> ScalarArg(T number, Site where = Site::here())
      : value(number), site(where) {}

  Scalar value;
  Site site;
};

// The tensors of cat, stack, einsum.
class TensorListArg {
 public:
  TensorListArg(std::initializer_list<Tensor> list, Site where = Site::here())
      : tensors(list), site(where) {}

  // NOLINTNEXTLINE(google-explicit-constructor): a vector is a list
  TensorListArg(const std::vector<Tensor>& list, Site where = Site::here())
      : tensors(list), site(where) {}

  std::vector<Tensor> tensors;
  Site site;
};

// As PyTorch prints: values (of a global tensor: meta and this rank's part), never communicates.
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

namespace internal {
// Copies all logical elements in row-major order, converted to `dtype`; collective for a global
// tensor. Defined in boxing.
void read_values(const Tensor& tensor, DType dtype, void* target, const char* method, Site site);
void check_data_type(const Tensor& tensor, DType wanted);
}  // namespace internal

template <class T>
T Tensor::item(Site site) const {
  T value{};
  internal::read_values(*this, dtype_of<T>, &value, "item", site);
  return value;
}

template <class T>
std::vector<T> Tensor::to_vector(Site site) const {
  if constexpr (std::is_same_v<T, bool>) {  // vector<bool> has no memory to copy into
    std::vector<uint8_t> bytes(static_cast<size_t>(numel()));
    internal::read_values(*this, DType::kBool, bytes.data(), "to_vector", site);
    return {bytes.begin(), bytes.end()};
  } else {
    std::vector<T> values(static_cast<size_t>(numel()));
    internal::read_values(*this, dtype_of<T>, values.data(), "to_vector", site);
    return values;
  }
}

template <class T>
T* Tensor::data() const {
  internal::check_data_type(*this, dtype_of<T>);
  return impl().storage ? reinterpret_cast<T*>(impl().data()) : nullptr;
}

}  // namespace flow
