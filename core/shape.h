// Small lists of sizes: the shape of a tensor, and arguments that are an integer or a list.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string_view>
#include <vector>

#include "core/site.h"

namespace flow {

// The largest number of dims of a tensor.
inline constexpr int kMaxDims = 8;

namespace internal {
[[noreturn]] void throw_too_many_dims(size_t dims);
}  // namespace internal

// A list of at most kMaxDims sizes, stored inline. Prints as (2, 3).
class Shape {
 public:
  constexpr Shape() = default;

  Shape(std::initializer_list<int64_t> dims) : Shape(dims.begin(), dims.size()) {}

  // NOLINTNEXTLINE(google-explicit-constructor): lists of sizes are shapes
  Shape(const std::vector<int64_t>& dims) : Shape(dims.data(), dims.size()) {}

  explicit Shape(std::span<const int64_t> dims) : Shape(dims.data(), dims.size()) {}

  // Returns a shape of `count` dims, each of size `value`.
  static Shape filled(int64_t count, int64_t value) {
    Shape shape;
    for (int64_t i = 0; i < count; ++i)
      shape.push_back(value);
    return shape;
  }

  constexpr int64_t size() const { return size_; }

  constexpr bool empty() const { return size_ == 0; }

  constexpr int64_t operator[](int64_t i) const { return dims_[static_cast<size_t>(i)]; }

  constexpr int64_t& operator[](int64_t i) { return dims_[static_cast<size_t>(i)]; }

  constexpr int64_t back() const { return dims_[static_cast<size_t>(size_ - 1)]; }

  constexpr const int64_t* begin() const { return dims_.data(); }

  constexpr const int64_t* end() const { return dims_.data() + size_; }

  constexpr int64_t* begin() { return dims_.data(); }

  constexpr int64_t* end() { return dims_.data() + size_; }

  constexpr const int64_t* data() const { return dims_.data(); }

  operator std::span<const int64_t>() const {  // NOLINT(google-explicit-constructor)
    return {begin(), static_cast<size_t>(size_)};
  }

  void push_back(int64_t dim) {
    if (size_ == kMaxDims) internal::throw_too_many_dims(kMaxDims + 1);
    dims_[static_cast<size_t>(size_++)] = dim;
  }

  void insert(int64_t at, int64_t dim) {
    push_back(dim);
    for (int64_t i = size_ - 1; i > at; --i)
      (*this)[i] = (*this)[i - 1];
    (*this)[at] = dim;
  }

  void erase(int64_t at) {
    --size_;
    for (int64_t i = at; i < size_; ++i)
      (*this)[i] = (*this)[i + 1];
    (*this)[size_] = 0;
  }

  // The number of elements; 1 for a scalar. Requires: the product fits int64 (checked when metas
  // are made).
  constexpr int64_t numel() const {
    int64_t product = 1;
    for (int64_t i = 0; i < size_; ++i)
      product *= dims_[static_cast<size_t>(i)];
    return product;
  }

  friend constexpr bool operator==(const Shape& a, const Shape& b) {
    return a.size_ == b.size_ && a.dims_ == b.dims_;  // entries after size_ are zero
  }

 private:
  Shape(const int64_t* dims, size_t count) : size_(static_cast<int64_t>(count)) {
    if (count > kMaxDims) internal::throw_too_many_dims(count);
    for (size_t i = 0; i < count; ++i)
      dims_[i] = dims[i];
  }

  std::array<int64_t, kMaxDims> dims_{};
  int64_t size_ = 0;
};

std::ostream& operator<<(std::ostream& out, const Shape& shape);

// Strides in elements, one per dim.
using Strides = Shape;

// Row-major strides of a shape.
Strides contiguous_strides(const Shape& shape);

// An integer or a list of integers: the dims of a reduction, kernel sizes, strides, paddings.
class Ints {
 public:
  Ints() = default;

  template <std::integral T>
  Ints(T value) : values_{static_cast<int64_t>(value)} {}  // NOLINT(google-explicit-constructor)

  Ints(std::initializer_list<int64_t> values) : values_(values) {}

  Ints(std::vector<int64_t> values)  // NOLINT(google-explicit-constructor)
      : values_(std::move(values)) {}

  Ints(const Shape& shape)  // NOLINT(google-explicit-constructor): a shape is a list of integers
      : values_(shape.begin(), shape.end()) {}

  bool empty() const { return values_.empty(); }

  int64_t size() const { return static_cast<int64_t>(values_.size()); }

  int64_t operator[](int64_t i) const { return values_[static_cast<size_t>(i)]; }

  auto begin() const { return values_.begin(); }

  auto end() const { return values_.end(); }

  const std::vector<int64_t>& values() const { return values_; }

 private:
  std::vector<int64_t> values_;
};

// Where a dim is cut: a number, of parts or of elements in a part, or a list, of sizes or of
// indices. {2} is a list of one.
class Sections {
 public:
  // A template, because int64_t would take {2} for a number.
  template <std::integral T>
  Sections(T number)  // NOLINT(google-explicit-constructor)
      : values_{static_cast<int64_t>(number)}, is_number_(true) {}

  Sections(std::initializer_list<int64_t> list) : values_(list) {}

  Sections(std::vector<int64_t> list)  // NOLINT(google-explicit-constructor)
      : values_(std::move(list)) {}

  bool is_number() const { return is_number_; }

  // Requires: is_number().
  int64_t number() const { return values_[0]; }

  // Requires: not is_number().
  const std::vector<int64_t>& list() const { return values_; }

 private:
  std::vector<int64_t> values_;
  bool is_number_ = false;
};

// The padding of a convolution: numbers (one for all spatial dims, or one per dim), "valid" (no
// padding) or "same" (ceil(in / stride) outputs; if the total padding is odd, the extra element
// goes to the end). Words may be in lower or upper case.
class Padding {
 public:
  enum class Mode : uint8_t { kNumbers, kSame, kValid };

  Padding() : numbers_(0) {}

  // A template, because int64_t would make 0 ambiguous with a null const char*.
  template <std::integral T>
  Padding(T value) : numbers_(value) {}  // NOLINT(google-explicit-constructor)

  Padding(std::initializer_list<int64_t> values) : numbers_(values) {}

  Padding(std::vector<int64_t> values)  // NOLINT(google-explicit-constructor)
      : numbers_(std::move(values)) {}

  Padding(Ints values) : numbers_(std::move(values)) {}  // NOLINT(google-explicit-constructor)

  // NOLINTNEXTLINE(google-explicit-constructor)
  Padding(const char* word, Site site = Site::here()) : Padding(std::string_view(word), site) {}

  // Throws InvalidArgument for any other word.
  // NOLINTNEXTLINE(google-explicit-constructor)
  Padding(std::string_view word, Site site = Site::here());

  Mode mode() const { return mode_; }

  // Empty unless mode() is kNumbers.
  const Ints& numbers() const { return numbers_; }

 private:
  Mode mode_ = Mode::kNumbers;
  Ints numbers_;
};

// Adds `ndim` to a negative dim. Throws InvalidArgument, naming `op`, if `dim` is outside [-ndim,
// ndim); a scalar accepts -1 and 0, as in PyTorch.
int64_t normalize_dim(int64_t dim, int64_t ndim, const char* op);

// The shape to which both broadcast (NumPy's rule). Throws InvalidArgument naming `op`.
Shape broadcast_shapes(const Shape& a, const Shape& b, const char* op);

}  // namespace flow
