// Everything that is known about a tensor without its data: logical shape, dtype, placement, SBP,
// and the memory layout of this rank's part. Metas are interned, so comparing two is comparing
// pointers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>

#include "core/device.h"
#include "core/dtype.h"
#include "core/placement.h"
#include "core/sbp.h"
#include "core/shape.h"

namespace flow {

// The half-open interval [begin, begin + size) of one dim.
struct Range {
  int64_t begin = 0;
  int64_t size = 0;
  friend bool operator==(const Range&, const Range&) = default;
};

// Part `index` of `size` elements that are divided into `parts` balanced parts: the first size mod
// parts parts get one more element. Parts may be empty.
Range balanced_part(int64_t size, int64_t parts, int64_t index);

// The box of the logical index space that one rank holds: offset and size per dim. If several axes
// split the same dim, each inner axis splits the part of the axis before it.
struct Box {
  Shape begin;
  Shape size;
  friend bool operator==(const Box&, const Box&) = default;
};

Box box_of(const Shape& logical, const Placement& placement, const NdSbp& nd_sbp, int64_t position);

// An opaque memory layout of a library, such as oneDNN's nChw16c. The owner interns its instances
// and never destroys them. `to_strided` writes `source` in plain row-major order to `target`.
struct BlockedLayout {
  const char* name;
  size_t bytes;
  void (*to_strided)(const BlockedLayout& layout, const void* source, void* target);
  const void* detail;
};

struct TensorMeta {
  Shape shape;  // logical
  DType dtype = DType::kFloat32;
  DeviceType device = DeviceType::kCpu;
  Placement placement;  // not defined: a local tensor
  NdSbp nd_sbp;
  // The shape of this rank's part; equal to `shape` for local tensors. On ranks outside the
  // placement, `is_held` is false and the local shape has no elements.
  Shape local_shape;
  Shape local_begin;  // the part's offset in the logical index space
  Strides strides;
  bool is_held = true;
  const BlockedLayout* blocked = nullptr;  // null: strided
  // Derived.
  bool is_contiguous = true;  // row-major strides, no blocked layout
  int64_t numel = 0;          // logical
  int64_t local_numel = 0;

  bool is_global() const { return placement.defined(); }

  int64_t dim() const { return shape.size(); }

  size_t local_bytes() const {
    return blocked != nullptr ? blocked->bytes
                              : static_cast<size_t>(local_numel) * dtype_size(dtype);
  }

  // True if the logical tensor and its layout over ranks are the same; local strides may differ.
  bool same_logical(const TensorMeta& other) const {
    return shape == other.shape && dtype == other.dtype && device == other.device &&
           placement == other.placement && nd_sbp == other.nd_sbp;
  }
};

using MetaPtr = const TensorMeta*;

// These functions return interned metas. Sizes must be >= 0 and the tensor's bytes must be at most
// 2^62; else they throw InvalidArgument.
MetaPtr local_meta(const Shape& shape, DType dtype, DeviceType device);
MetaPtr strided_meta(const Shape& shape, const Strides& strides, DType dtype, DeviceType device);
// The part of `rank` is contiguous. Throws InvalidArgument unless nd_sbp has one entry per axis and
// its split dims exist.
MetaPtr global_meta(const Shape& shape, DType dtype, const Placement& placement,
                    const NdSbp& nd_sbp, int64_t rank);
// Returns `meta` with other strides of the local part, or with a blocked layout.
MetaPtr with_strides(MetaPtr meta, const Strides& strides);
MetaPtr with_blocked(MetaPtr meta, const BlockedLayout* blocked);
// The meta of the local tensor that to_local() returns: shape local_shape, the same strides.
MetaPtr local_part(MetaPtr meta);

// "(4, 3) float32" or "(4, 3) float32 [S(0) on cpu:(0, 1)]".
std::ostream& operator<<(std::ostream& out, const TensorMeta& meta);

}  // namespace flow
