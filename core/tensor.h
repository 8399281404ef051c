// Tensor: a handle on a local or global tensor. Copies share the tensor; a default-made handle is
// undefined.
//
// The handle says what a tensor is, reads its values and changes its layout. All other methods come
// from the empty bases of core/methods, which declare them by subject; each method is defined in
// the folder that owns what it does, next to its function. One rule joins methods and functions: a
// function is also a method of its first tensor where PyTorch has that method. x.f(y, options) is
// f(x, y, options), so the header of the function describes both. (PyTorch's where puts the
// condition first; x.where(condition, y) is where(condition, x, y).)
//
// A method reports the call site of the first tensor among its arguments; a method without such an
// argument ends in `Site site`. If options stand before the site, the method has an overload
// without them, so that a caller who passes a site need not write options.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/calls/deep_copy.h"
#include "core/methods/autograd.h"
#include "core/methods/in_place.h"
#include "core/methods/index.h"
#include "core/methods/linalg.h"
#include "core/methods/pointwise.h"
#include "core/methods/reduce.h"
#include "core/methods/shape.h"
#include "core/scalar.h"
#include "core/shape.h"
#include "core/site.h"
#include "core/tensor_impl.h"
#include "core/tensor_options.h"

namespace flow {

class TensorArg;
struct ScalarArg;
struct ToGlobalOptions;

class Tensor : public PointwiseMethods,
               public ReduceMethods,
               public ShapeMethods,
               public IndexMethods,
               public LinalgMethods,
               public InPlaceMethods,
               public AutogradMethods {
 public:
  Tensor() = default;

  Tensor(const Tensor& other) noexcept
      : impl_(DeepCopy::is_active() ? DeepCopy::of(other.impl_) : other.impl_) {}

  Tensor(Tensor&&) noexcept = default;
  // A named handle refers to another tensor from now on.
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & noexcept = default;
  // `x[0] = y`, `x.narrow(0, 1, 2) = 3`: writes into the memory that the view shows, as copy_ and
  // fill_ do. Throws InvalidArgument if nobody else can see the write because the left side is a
  // copy, x.index({mask}) = y (index_put_ writes there), or a part of a temporary, (x + 1)[0] = y.
  const Tensor& operator=(const TensorArg& values) &&;
  const Tensor& operator=(const ScalarArg& value) &&;

  // ---- what it is (no communication)
  bool defined() const { return static_cast<bool>(impl_); }

  const flow::Shape& shape() const { return meta().shape; }

  // The size of `dim`, which counts from the end if it is negative. Throws InvalidArgument if there
  // is no such dim; a tensor without dims has none.
  int64_t size(int64_t dim, Site site = Site::here()) const;

  int64_t dim() const { return meta().shape.size(); }

  int64_t numel() const { return meta().numel; }

  DType dtype() const { return meta().dtype; }

  DeviceType device() const { return meta().device; }

  bool is_global() const { return meta().is_global(); }

  flow::Placement placement() const { return meta().placement; }

  NdSbp sbp() const { return meta().nd_sbp; }

  size_t element_size() const { return dtype_size(dtype()); }

  // The strides of this rank's part.
  const Strides& strides() const { return meta().strides; }

  int64_t stride(int64_t dim, Site site = Site::here()) const;
  int64_t storage_offset() const;

  bool is_contiguous() const { return meta().is_contiguous; }

  // ---- values (collective over the placement's world for global tensors: item, to_vector, full)
  // The one element. Throws InvalidArgument unless numel() is 1, and if an integer type T cannot
  // hold it.
  template <class T = double>
  T item(Site site = Site::here()) const;
  // All logical elements in row-major order, converted to T.
  template <class T>
  std::vector<T> to_vector(Site site = Site::here()) const;
  // This rank's memory. Throws InvalidArgument unless T is the dtype's C++ type. A blocked layout
  // becomes strided first.
  template <class T>
  T* data(Site site = Site::here()) const;
  // The logical tensor as a local tensor on every rank.
  Tensor full(Site site = Site::here()) const;

  // ---- placement, dtype and layout
  Tensor to_global(const ToGlobalOptions& options, Site site = Site::here()) const;
  Tensor to_global(const Placement& placement, const NdSbp& sbp, Site site = Site::here()) const;
  Tensor to_local(Site site = Site::here()) const;
  Tensor to(DType dtype, Site site = Site::here()) const;
  Tensor to(std::string_view device, Site site = Site::here()) const;
  // to("cpu") and to("cuda").
  Tensor cpu(Site site = Site::here()) const;
  Tensor cuda(Site site = Site::here()) const;
  Tensor contiguous(Site site = Site::here()) const;
  Tensor clone(Site site = Site::here()) const;

  // ---- autograd; the rest is in core/methods/autograd.h
  bool requires_grad() const { return impl().tracks_grad(); }

  // True for a tensor that the user made (or one that records nothing).
  bool is_leaf() const { return !impl().grad_fn && impl().requires_grad == requires_grad(); }

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

  // Turns the blocked layout of this rank's part into a strided one, in place.
  void make_strided() const;

  // True if both handles refer to the same tensor.
  bool is_same(const Tensor& other) const { return impl_ == other.impl_; }

 private:
  friend class TensorArg;
  [[noreturn]] static void throw_undefined(Site site = Site::none());
  Ref<TensorImpl> impl_;
};

static_assert(sizeof(Tensor) == sizeof(Ref<TensorImpl>), "a base of Tensor is not empty");

template <class Family>
const Tensor& MethodFamily<Family>::self() const {
  return static_cast<const Tensor&>(static_cast<const Family&>(*this));
}

template <class Family>
Tensor& MethodFamily<Family>::temporary_self() {
  return static_cast<Tensor&>(static_cast<Family&>(*this));
}

// Elements and their positions: the result of max over a dim, sort, topk, pooling with indices.
struct ValuesIndices {
  Tensor values, indices;
};

// A tensor and the place in the source where it was passed. Public ops take it. It lives for one
// call, so it is neither stored nor default-made.
class TensorArg {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): a tensor is an argument
  TensorArg(const Tensor& tensor, const char* file = __builtin_FILE(),
            uint32_t line = __builtin_LINE())
      : tensor_(&tensor), file_(file), line_(line) {}

  TensorArg(const Tensor& tensor, Site site) : TensorArg(tensor, site.file(), site.line()) {}

  operator const Tensor&() const { return *tensor_; }  // NOLINT(google-explicit-constructor)

  const Tensor& tensor() const { return *tensor_; }

  // Throws InvalidArgument, with the place, if the tensor is undefined; defined() asks.
  const Tensor* operator->() const {
    if (!tensor_->defined()) [[unlikely]]
      throw_undefined();
    return tensor_;
  }

  bool defined() const { return tensor_->defined(); }

  Site site() const { return Site(Site::Key(), file_, line_); }

 private:
  [[noreturn]] void throw_undefined() const;

  const Tensor* tensor_;
  const char* file_;
  uint32_t line_;
};

// The number on the right of `x += 2`, with its place in the source.
struct ScalarArg {
  template <class T>

  // NOLINTNEXTLINE(google-explicit-constructor)
  requires std::is_arithmetic_v<T> ScalarArg(T number, Site where = Site::here())
      : value(number), site(where) {}

  Scalar value;
  Site site;
};

// The list of tensors that cat, stack and einsum take.
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

// Prints as PyTorch does: the values (of a global tensor: the meta and this rank's part). Never
// communicates.
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

namespace internal {
// Copies all logical elements in row-major order, converted to `dtype`; collective for a global
// tensor. Defined in boxing.
void read_values(const Tensor& tensor, DType dtype, void* target, const char* method, Site site);
void check_data_type(const Tensor& tensor, DType wanted, Site site);
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
T* Tensor::data(Site site) const {
  internal::check_data_type(*this, dtype_of<T>, site);
  return impl().storage ? reinterpret_cast<T*>(impl().data()) : nullptr;
}

}  // namespace flow
