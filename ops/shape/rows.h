// The rows of a tensor in a range-for loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "core/tensor.h"

namespace flow {

// An iterator over x[0], x[1], …, which are views of x. It keeps x alive.
class RowIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = Tensor;
  using difference_type = std::ptrdiff_t;
  using pointer = const Tensor*;
  using reference = Tensor;

  RowIterator(const TensorArg& x, int64_t position)
      : tensor_(x.tensor()), position_(position), site_(x.site()) {}

  Tensor operator*() const;

  RowIterator& operator++() {
    ++position_;
    return *this;
  }

  void operator++(int) { ++position_; }

  bool operator==(const RowIterator& other) const { return position_ == other.position_; }

 private:
  Tensor tensor_;
  int64_t position_;
  Site site_;
};

// The first row and the end of a tensor (n, ...):  for (const Tensor& row : x) …
// Throws InvalidArgument if x has no dims.
RowIterator begin(const TensorArg& x);
RowIterator end(const TensorArg& x);

}  // namespace flow
