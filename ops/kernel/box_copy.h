// Copies boxes of elements between strided tensors. Kernels that compute nothing are composed of
// such copies.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/kernel.h"
#include "core/tensor_meta.h"
#include "ops/kernel/plane_copy.h"

namespace flow::ops {

// The start of a box and the distance between its neighbours along each dim, in elements.
struct BoxSource {
  const std::byte* data;
  Strides strides;
};

struct BoxTarget {
  std::byte* data;
  Strides strides;
};

// The loops that copy boxes of one size and layout. Dims of size 1 are removed, the others are
// ordered as in the target's memory, and neighbouring dims are merged. The innermost dim and the
// one along which the source is dense form planes.
class BoxLoop {
 public:
  // Elements have 1, 2, 4 or 8 bytes. Strides may be negative.
  BoxLoop(const Shape& size, const Strides& target, const Strides& source, size_t element_bytes);

  // target[i] = source[i] for every index i of the box. The two must not overlap.
  void copy(std::byte* target, const std::byte* source) const;
  void copy(ThreadPool& pool, std::byte* target, const std::byte* source) const;  // large ones

 private:
  struct Dim {
    int64_t size;
    int64_t target;  // strides
    int64_t source;
  };

  // Copies indices [begin, end) of dim `depth` and all of the dims inside it.
  void copy_range(size_t depth, int64_t begin, int64_t end, std::byte* target,
                  const std::byte* source) const;

  std::array<Dim, kMaxDims + 1> dims_;  // outermost first; the last two are rows and columns
  size_t count_ = 0;
  bool is_empty_;
  int64_t element_bytes_;
  PlaneCopy copy_;
};

// Copies one box once.
void copy_box(const Shape& size, const BoxTarget& target, const BoxSource& source,
              size_t element_bytes);
void copy_box(ThreadPool& pool, const Shape& size, const BoxTarget& target, const BoxSource& source,
              size_t element_bytes);

// Copies the tensors' whole local parts. `target` may be given other strides.
void copy_part(const TensorView& target, const TensorView& source);
void copy_part(ThreadPool& pool, const TensorView& target, const TensorView& source);
void zero_part(const TensorView& target);

// The k in `indices` with start + step * k in `positions`. Requires: step > 0.
Range indices_inside(Range indices, int64_t start, int64_t step, Range positions);

// The local part of `dim`.
Range local_range(const TensorMeta& meta, int64_t dim);

}  // namespace flow::ops
