// Tensor: a handle on a local or global tensor. Copying shares; a default-made one is undefined.
// Methods are defined in the folder that owns what they do (ops, boxing, autograd).
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
struct ReduceOptions;
struct ToGlobalOptions;

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

  // ---- arithmetic; the rest are free functions
  Tensor add(const TensorArg& other) const;
  Tensor add(const TensorArg& other, const AddOptions& options) const;
  Tensor sub(const TensorArg& other) const;
  Tensor mul(const TensorArg& other) const;
  Tensor div(const TensorArg& other) const;
  Tensor matmul(const TensorArg& other) const;
  Tensor pow(const Scalar& exponent, Site site = Site::here()) const;
  Tensor exp(Site site = Site::here()) const;
  Tensor log(Site site = Site::here()) const;
  Tensor sqrt(Site site = Site::here()) const;
  Tensor abs(Site site = Site::here()) const;
  Tensor neg(Site site = Site::here()) const;
  Tensor relu(Site site = Site::here()) const;
  Tensor tanh(Site site = Site::here()) const;
  Tensor sigmoid(Site site = Site::here()) const;
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
