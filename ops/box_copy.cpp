#include "ops/box_copy.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/error.h"

namespace flow::ops {

namespace {

int64_t ceil_div(int64_t a, int64_t b) {
  return a >= 0 ? (a + b - 1) / b : -(-a / b);
}

}  // namespace

BoxLoop::BoxLoop(const Shape& size, const Strides& target, const Strides& source,
                 size_t element_bytes)
    : is_empty_(size.numel() == 0), element_bytes_(element_bytes) {
  for (int64_t i = 0; i < size.size(); ++i) {
    const Dim dim{size[i], target[i], source[i]};
    if (dim.size == 1) continue;
    if (count_ > 0) {
      Dim& outer = dims_[static_cast<size_t>(count_ - 1)];
      if (outer.target == dim.target * dim.size && outer.source == dim.source * dim.size) {
        outer = {outer.size * dim.size, dim.target, dim.source};
        continue;
      }
    }
    dims_[static_cast<size_t>(count_++)] = dim;
  }
  if (count_ == 0) dims_[static_cast<size_t>(count_++)] = {1, 1, 1};
}

template <class T>
void BoxLoop::copy_dims(int depth, T* target, const T* source) const {
  const Dim& dim = dims_[static_cast<size_t>(depth)];
  if (depth < count_ - 1) {
    for (int64_t i = 0; i < dim.size; ++i)
      copy_dims(depth + 1, target + i * dim.target, source + i * dim.source);
  } else if (dim.target == 1 && dim.source == 1) {
    std::memcpy(target, source, static_cast<size_t>(dim.size) * sizeof(T));
  } else {
    for (int64_t i = 0; i < dim.size; ++i)
      target[i * dim.target] = source[i * dim.source];
  }
}

void BoxLoop::copy(std::byte* target, const std::byte* source) const {
  if (is_empty_) return;
  const auto copy_as = [&]<class T>() {
    copy_dims(0, reinterpret_cast<T*>(target), reinterpret_cast<const T*>(source));
  };
  switch (element_bytes_) {
    case 1:
      return copy_as.operator()<uint8_t>();
    case 2:
      return copy_as.operator()<uint16_t>();
    case 4:
      return copy_as.operator()<uint32_t>();
    case 8:
      return copy_as.operator()<uint64_t>();
    default:
      FLOW_ASSERT(false, "no element has ", element_bytes_, " bytes");
  }
}

void copy_box(const Shape& size, const BoxTarget& target, const BoxSource& source,
              size_t element_bytes) {
  BoxLoop(size, target.strides, source.strides, element_bytes).copy(target.data, source.data);
}

void copy_part(const TensorView& target, const TensorView& source) {
  copy_box(target.shape(), {target.data, target.strides()}, {source.data, source.strides()},
           dtype_size(target.meta->dtype));
}

void zero_part(const TensorView& target) {
  if (target.numel() > 0) {
    std::memset(target.data, 0,
                static_cast<size_t>(target.numel()) * dtype_size(target.meta->dtype));
  }
}

Range indices_inside(Range indices, int64_t start, int64_t step, Range positions) {
  const int64_t first = ceil_div(positions.begin - start, step);
  const int64_t end = ceil_div(positions.begin + positions.size - start, step);
  const int64_t begin = std::max(indices.begin, first);
  return {begin, std::max<int64_t>(0, std::min(indices.begin + indices.size, end) - begin)};
}

Range local_range(const TensorMeta& meta, int64_t dim) {
  return {meta.local_begin[dim], meta.local_shape[dim]};
}

}  // namespace flow::ops
