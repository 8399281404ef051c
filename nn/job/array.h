// Array: values in host memory with a shape and a dtype. Arrays belong to no rank; job functions
// take and return them.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/dtype.h"
#include "core/shape.h"

namespace flow {

// Copies share the values, which never change.
class Array {
 public:
  // An empty array: shape (0), float32.
  Array() : Array(DType::kFloat32, Shape{0}, 0) {}

  // `values` are in row-major order. Throws InvalidArgument if their number is not that of `shape`.
  template <class T>
  Array(const std::vector<T>& values, const Shape& shape)
      : Array(dtype_of<T>, shape, values.size()) {
    T* target = reinterpret_cast<T*>(bytes_.get());
    for (size_t i = 0; i < values.size(); ++i)
      target[i] = values[i];
  }

  // Copies `shape.numel()` values of `dtype` from `source`.
  static Array copy_of(const void* source, DType dtype, const Shape& shape);

  const Shape& shape() const { return shape_; }

  int64_t size(int64_t dim) const { return shape_[dim < 0 ? dim + shape_.size() : dim]; }

  int64_t numel() const { return shape_.numel(); }

  DType dtype() const { return dtype_; }

  // The values in row-major order, converted to T by C++ conversion. T: bool, uint8_t, int8_t,
  // int32_t, int64_t, float, double.
  template <class T>
  std::vector<T> to_vector() const;

  const std::byte* data() const { return bytes_.get(); }

 private:
  Array(DType dtype, const Shape& shape, size_t count);

  DType dtype_;
  Shape shape_;
  std::shared_ptr<std::byte[]> bytes_;
};

}  // namespace flow
