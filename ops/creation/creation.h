// Creates tensors from sizes, from numbers and from memory.
//
// The options give dtype (default_dtype() unless the data determines it), device and layout. With a
// placement the result is global: the value given is the logical one and is the same on every rank,
// and each rank keeps its own part. Under a partial_sum, the first rank of the axis holds the value
// and the others hold zeros. An unset sbp means broadcast. Without a placement and a device, the
// layout of a PlacementGuard is used if there is one; otherwise the tensor is local.
//   zeros({2, 3}, {.dtype = flow::float64, .placement = both, .sbp = flow::sbp::split(0)})
#pragma once

#include <functional>
#include <initializer_list>
#include <type_traits>
#include <vector>

#include "core/default_dtype.h"
#include "core/tensor.h"

namespace flow {

// Numbers in nested braces: 1.5, {1, 2}, {{1.f, 2.f}, {3.f, 4.f}}. The kind of the numbers
// determines the dtype: bool, int64 or default_dtype().
class TensorLiteral {
 public:
  template <class T>

  requires std::is_arithmetic_v<T> TensorLiteral(T value)  // NOLINT(google-explicit-constructor)
      : values_{value} {}

  // Throws InvalidArgument if lists at the same depth differ in length.
  TensorLiteral(std::initializer_list<TensorLiteral> nested);

  const Shape& shape() const { return shape_; }

  const std::vector<Scalar>& values() const { return values_; }

  DType dtype() const;

 private:
  Shape shape_;
  std::vector<Scalar> values_;  // row-major
};

// Creates a tensor with the logical value in braces.  tensor({{1.f, 2.f}, {3.f, 4.f}})
Tensor tensor(const TensorLiteral& values, const TensorOptions& options = {},
              Site site = Site::here());

namespace internal {
// Creates the part of the row-major logical `values` that this rank keeps.
Tensor tensor_from(const void* values, DType dtype, size_t count, const Shape& shape,
                   const TensorOptions& options, Site site);
Tensor wrap_blob(void* data, DType dtype, const Shape& shape, const TensorOptions& options,
                 std::function<void(void*)> deleter, Site site);
}  // namespace internal

// Creates a tensor from the logical values in row-major order. The dtype is that of T unless
// options give another.
template <class T>
Tensor tensor(const std::vector<T>& values, const Shape& shape, const TensorOptions& options = {},
              Site site = Site::here()) {
  if constexpr (std::is_same_v<T, bool>) {  // vector<bool> has no memory to copy from
    const std::vector<uint8_t> bytes(values.begin(), values.end());
    TensorOptions as_bool = options;
    if (!as_bool.dtype) as_bool.dtype = DType::kBool;
    return internal::tensor_from(bytes.data(), DType::kUInt8, bytes.size(), shape, as_bool, site);
  } else {
    return internal::tensor_from(values.data(), dtype_of<T>, values.size(), shape, options, site);
  }
}

// The same with a shape in braces, which may be empty: {} for a tensor without dims.
template <class T>
Tensor tensor(const std::vector<T>& values, std::initializer_list<int64_t> shape,
              const TensorOptions& options = {}, Site site = Site::here()) {
  return tensor(values, Shape(shape), options, site);
}

// Creates a tensor with one dim.
template <class T>
Tensor tensor(const std::vector<T>& values, const TensorOptions& options = {},
              Site site = Site::here()) {
  return tensor(values, Shape{static_cast<int64_t>(values.size())}, options, site);
}

// Creates a local tensor that shares `data`: shape.numel() elements in row-major order, which must
// stay valid until `deleter` is called. `deleter` is called when the last tensor that uses the
// memory is destroyed, and not at all if this function throws. For a global tensor, call to_global
// on the result.
template <class T>
Tensor from_blob(T* data, const Shape& shape, const TensorOptions& options = {},
                 const std::function<void(void*)>& deleter = {}, Site site = Site::here()) {
  return internal::wrap_blob(data, dtype_of<T>, shape, options, deleter, site);
}

// Creates a tensor whose memory is not initialised.
Tensor empty(const Shape& shape, const TensorOptions& options = {}, Site site = Site::here());
// Creates a tensor of zeros, or of ones.
Tensor zeros(const Shape& shape, const TensorOptions& options = {}, Site site = Site::here());
Tensor ones(const Shape& shape, const TensorOptions& options = {}, Site site = Site::here());
// Creates a tensor whose elements are `value`. Unless options give a dtype, it is the one of the
// number's kind.
Tensor full(const Shape& shape, const Scalar& value, const TensorOptions& options = {},
            Site site = Site::here());
// The numbers start, start + step, … below end (above end for a negative step). The dtype is int64
// if all arguments are integers.
Tensor arange(const Scalar& end, const TensorOptions& options = {}, Site site = Site::here());
Tensor arange(const Scalar& start, const Scalar& end, const TensorOptions& options = {},
              Site site = Site::here());
Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step,
              const TensorOptions& options = {}, Site site = Site::here());
// `steps` equally spaced numbers from start to end, both included.
Tensor linspace(const Scalar& start, const Scalar& end, int64_t steps,
                const TensorOptions& options = {}, Site site = Site::here());
// An (n, m) matrix with ones on the diagonal and zeros elsewhere. Without m, it is (n, n).
Tensor eye(int64_t n, const TensorOptions& options = {}, Site site = Site::here());
Tensor eye(int64_t n, int64_t m, const TensorOptions& options = {}, Site site = Site::here());

// The dtype, device and layout of x, as options.
TensorOptions options_like(const Tensor& x);
// Create tensors with the shape and options of x. Fields that are set in `options` take precedence.
Tensor empty_like(const TensorArg& x, const TensorOptions& options = {});
Tensor zeros_like(const TensorArg& x, const TensorOptions& options = {});
Tensor ones_like(const TensorArg& x, const TensorOptions& options = {});
Tensor full_like(const TensorArg& x, const Scalar& value, const TensorOptions& options = {});

// Create tensors of the given shape with the dtype and layout of x, where splits of dims that the
// shape lacks become B. Fields that are set in `options` take precedence.
Tensor new_empty(const TensorArg& x, const Shape& shape, const TensorOptions& options = {});
Tensor new_zeros(const TensorArg& x, const Shape& shape, const TensorOptions& options = {});
Tensor new_ones(const TensorArg& x, const Shape& shape, const TensorOptions& options = {});
Tensor new_full(const TensorArg& x, const Shape& shape, const Scalar& value,
                const TensorOptions& options = {});
Tensor new_tensor(const TensorArg& x, const TensorLiteral& values,
                  const TensorOptions& options = {});

}  // namespace flow
