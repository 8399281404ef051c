#include "core/tensor_meta.h"

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <ostream>
#include <unordered_set>

#include "core/error.h"
#include "core/hash.h"

namespace flow {

Range balanced_part(int64_t size, int64_t parts, int64_t index) {
  const int64_t base = size / parts;
  const int64_t longer = size % parts;
  return {.begin = index * base + std::min(index, longer), .size = base + (index < longer ? 1 : 0)};
}

Box box_of(const Shape& logical, const Placement& placement, const NdSbp& nd_sbp,
           int64_t position) {
  Box box{.begin = Shape::filled(logical.size(), 0), .size = logical};
  for (int64_t axis = 0; axis < nd_sbp.size(); ++axis) {
    if (!nd_sbp[axis].is_split()) continue;
    const int64_t dim = nd_sbp[axis].dim();
    const Range part =
        balanced_part(box.size[dim], placement.shape()[axis], placement.coordinate(position, axis));
    box.begin[dim] += part.begin;
    box.size[dim] = part.size;
  }
  return box;
}

namespace {

struct MetaHash {
  size_t operator()(const std::unique_ptr<const TensorMeta>& meta) const { return (*this)(*meta); }

  size_t operator()(const TensorMeta& meta) const {
    Hasher hasher;
    for (const int64_t d : meta.shape)
      hasher.add(static_cast<uint64_t>(d));
    for (const int64_t d : meta.local_shape)
      hasher.add(static_cast<uint64_t>(d));
    for (const int64_t s : meta.strides)
      hasher.add(static_cast<uint64_t>(s));
    for (const int64_t b : meta.local_begin)
      hasher.add(static_cast<uint64_t>(b));
    hasher.add(static_cast<uint64_t>(meta.dtype));
    hasher.add(static_cast<uint64_t>(meta.device));
    hasher.add(meta.placement.id());
    for (const Sbp& s : meta.nd_sbp) {
      hasher.add(static_cast<uint64_t>(s.kind()) * 16 + static_cast<uint64_t>(s.dim()));
    }
    hasher.add(meta.blocked);
    return hasher.value();
  }

  using is_transparent = void;
};

struct MetaEqual {
  using is_transparent = void;

  static const TensorMeta& value(const TensorMeta& meta) { return meta; }

  static const TensorMeta& value(const std::unique_ptr<const TensorMeta>& meta) { return *meta; }

  bool operator()(const auto& left, const auto& right) const {
    const TensorMeta& a = value(left);
    const TensorMeta& b = value(right);
    return a.same_logical(b) && a.local_shape == b.local_shape && a.strides == b.strides &&
           a.local_begin == b.local_begin && a.is_held == b.is_held && a.blocked == b.blocked;
  }
};

// The table is divided into shards, so that thread ranks rarely wait for each other. Never
// destroyed.
struct Shard {
  std::mutex mutex;
  std::unordered_set<std::unique_ptr<const TensorMeta>, MetaHash, MetaEqual> metas;
};

int64_t checked_numel(const Shape& shape, DType dtype) {
  int64_t product = 1;
  const int64_t limit = (int64_t{1} << 62) / static_cast<int64_t>(dtype_size(dtype));
  bool is_empty = false;
  for (const int64_t d : shape) {
    if (d < 0) {
      throw InvalidArgument(
          str("[tensor] a size is negative; received shape ", shape, "; give sizes of at least 0"));
    }
    is_empty |= d == 0;
  }
  if (is_empty) return 0;
  for (const int64_t d : shape) {
    if (d > limit / product) {
      throw InvalidArgument(str("[tensor] shape ", shape, " of ", dtype,
                                " has more bytes than can be addressed; give a smaller shape"));
    }
    product *= d;
  }
  return product;
}

MetaPtr intern(TensorMeta meta) {
  meta.numel = checked_numel(meta.shape, meta.dtype);
  const bool is_empty =
      std::find(meta.local_shape.begin(), meta.local_shape.end(), 0) != meta.local_shape.end();
  meta.local_numel = is_empty ? 0 : meta.local_shape.numel();
  meta.is_contiguous =
      meta.blocked == nullptr &&
      (meta.local_numel <= 1 || meta.strides == contiguous_strides(meta.local_shape));
  if (!meta.is_contiguous && meta.blocked == nullptr) {
    // Strides of size-1 dims are never used.
    bool matches = true;
    const Strides plain = contiguous_strides(meta.local_shape);
    for (int64_t i = 0; i < plain.size(); ++i) {
      matches &= meta.local_shape[i] == 1 || meta.strides[i] == plain[i];
    }
    meta.is_contiguous = matches || meta.local_numel == 0;
  }
  // Equal layouts have one representation, so that they share decisions.
  if (meta.is_contiguous) meta.strides = contiguous_strides(meta.local_shape);
  static auto& shards = *new std::array<Shard, 16>;
  Shard& shard = shards[MetaHash()(meta) % shards.size()];
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.metas.find(meta);
  if (found != shard.metas.end()) return found->get();
  return shard.metas.insert(std::make_unique<const TensorMeta>(std::move(meta))).first->get();
}

}  // namespace

MetaPtr local_meta(const Shape& shape, DType dtype, DeviceType device) {
  checked_numel(shape, dtype);
  return strided_meta(shape, contiguous_strides(shape), dtype, device);
}

MetaPtr strided_meta(const Shape& shape, const Strides& strides, DType dtype, DeviceType device) {
  TensorMeta meta;
  meta.shape = shape;
  meta.local_shape = shape;
  meta.local_begin = Shape::filled(shape.size(), 0);
  meta.strides = strides;
  meta.dtype = dtype;
  meta.device = device;
  return intern(std::move(meta));
}

MetaPtr global_meta(const Shape& shape, DType dtype, const Placement& placement,
                    const NdSbp& nd_sbp, int64_t rank) {
  if (nd_sbp.size() != placement.num_axes()) {
    throw InvalidArgument(str("[tensor] sbp ", nd_sbp, " has ", nd_sbp.size(),
                              " entries but placement ", placement, " has ", placement.num_axes(),
                              " axes; give one entry per axis"));
  }
  for (const Sbp& s : nd_sbp) {
    if (s.is_split() && s.dim() >= shape.size()) {
      throw InvalidArgument(str("[tensor] sbp ", nd_sbp, " splits dim ", s.dim(),
                                " of a tensor of shape ", shape, "; split one of its ",
                                shape.size(), " dims"));
    }
  }
  checked_numel(shape, dtype);
  TensorMeta meta;
  meta.shape = shape;
  meta.dtype = dtype;
  meta.device = placement.device_type();
  meta.placement = placement;
  meta.nd_sbp = nd_sbp;
  const int64_t position = placement.position(rank);
  meta.is_held = position >= 0;
  if (meta.is_held) {
    const Box box = box_of(shape, placement, nd_sbp, position);
    meta.local_shape = box.size;
    meta.local_begin = box.begin;
  } else {
    meta.local_shape = Shape{0};
    meta.local_begin = Shape{0};
  }
  meta.strides = contiguous_strides(meta.local_shape);
  return intern(std::move(meta));
}

MetaPtr with_strides(MetaPtr meta, const Strides& strides) {
  TensorMeta other = *meta;
  other.strides = strides;
  other.blocked = nullptr;
  return intern(std::move(other));
}

MetaPtr with_blocked(MetaPtr meta, const BlockedLayout* blocked) {
  TensorMeta other = *meta;
  other.strides = contiguous_strides(other.local_shape);
  other.blocked = blocked;
  return intern(std::move(other));
}

MetaPtr local_part(MetaPtr meta) {
  if (!meta->is_global()) return meta;
  MetaPtr local = strided_meta(meta->local_shape, meta->strides, meta->dtype, meta->device);
  return meta->blocked == nullptr ? local : with_blocked(local, meta->blocked);
}

std::ostream& operator<<(std::ostream& out, const TensorMeta& meta) {
  out << meta.shape << ' ' << meta.dtype;
  if (meta.is_global()) out << " [" << meta.nd_sbp << " on " << meta.placement << ']';
  return out;
}

}  // namespace flow
