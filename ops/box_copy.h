// Moving boxes of elements between strided tensors: what kernels that compute nothing are made of.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/kernel.h"
#include "core/tensor_meta.h"

namespace flow::ops {

// Where a box starts and how far its neighbours lie apart, in elements.
struct BoxSource {
  const std::byte* data;
  Strides strides;
};

struct BoxTarget {
  std::byte* data;
  Strides strides;
};

// The loops that copy boxes of one size and layout: dims of size 1 are gone, neighbours merged.
class BoxLoop {
 public:
  // Elements have 1, 2, 4 or 8 bytes. Strides may be negative.
  BoxLoop(const Shape& size, const Strides& target, const Strides& source, size_t element_bytes);

  // target[i] = source[i] for every index i of the box. The two must not overlap.
  void copy(std::byte* target, const std::byte* source) const;

 private:
  struct Dim {
    int64_t size;
    int64_t target;  // strides
    int64_t source;
  };

  template <class T>
  void copy_dims(int depth, T* target, const T* source) const;

  std::array<Dim, kMaxDims> dims_;  // outermost first; the last is the row
  int count_ = 0;
  bool is_empty_;
  size_t element_bytes_;
};

// One box, once.
void copy_box(const Shape& size, const BoxTarget& target, const BoxSource& source,
              size_t element_bytes);

// All of the tensors' local parts; `target` may be given other strides.
void copy_part(const TensorView& target, const TensorView& source);
void zero_part(const TensorView& target);

// The k in `indices` with start + step * k in `positions`. Requires: step > 0.
Range indices_inside(Range indices, int64_t start, int64_t step, Range positions);

// The local part of `dim`.
Range local_range(const TensorMeta& meta, int64_t dim);

}  // namespace flow::ops
