// What is known of a tensor without its data: logical shape, dtype, placement, SBP, and how this
// rank's part lies in memory. Metas are interned: equality is a pointer compare.
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

// Part `index` of `size` elements cut into `parts` balanced parts: the first size mod parts get
// one element more; parts may be empty.
Range balanced_part(int64_t size, int64_t parts, int64_t index);

// The box of the logical index space that one rank holds: offset and size per dim. Nested splits
// of one dim cut the outer part again.
struct Box {
  Shape begin;
  Shape size;
  friend bool operator==(const Box&, const Box&) = default;
};

Box box_of(const Shape& logical, const Placement& placement, const NdSbp& nd_sbp, int64_t position);

// An opaque memory layout of a library (for instance oneDNN's nChw16c). Instances are interned by
// their owner and never die. `to_strided` writes the plain row-major form of `source`.
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
  // This rank's part; equal to `shape` for local tensors. `is_held` is false on ranks outside the
  // placement, whose local shape is that of no elements.
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

  // Same logical tensor and layout over ranks, whatever the local strides.
  bool same_logical(const TensorMeta& other) const {
    return shape == other.shape && dtype == other.dtype && device == other.device &&
           placement == other.placement && nd_sbp == other.nd_sbp;
  }
};

using MetaPtr = const TensorMeta*;

// Interns. Sizes must be >= 0 and their product, in bytes, must fit 2^62: else InvalidArgument.
MetaPtr local_meta(const Shape& shape, DType dtype, DeviceType device);
MetaPtr strided_meta(const Shape& shape, const Strides& strides, DType dtype, DeviceType device);
// The part of `rank` is contiguous. Checks that nd_sbp has one entry per axis and that split dims
// exist; throws InvalidArgument.
MetaPtr global_meta(const Shape& shape, DType dtype, const Placement& placement,
                    const NdSbp& nd_sbp, int64_t rank);
// `meta` with other strides of the local part, or with a blocked layout.
MetaPtr with_strides(MetaPtr meta, const Strides& strides);
MetaPtr with_blocked(MetaPtr meta, const BlockedLayout* blocked);
// The local tensor that this rank's part is (to_local): shape local_shape, same strides.
MetaPtr local_part(MetaPtr meta);

// "(4, 3) float32" or "(4, 3) float32 [S(0) on cpu:(0, 1)]".
std::ostream& operator<<(std::ostream& out, const TensorMeta& meta);

}  // namespace flow
