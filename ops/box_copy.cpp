#include "ops/box_copy.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/error.h"

namespace flow::ops {

namespace {

struct Dim {
  int64_t size;
  int64_t target;  // strides
  int64_t source;
};

struct Loop {
  std::array<Dim, kMaxDims + 1> dims;  // outermost first; the last is the row
  int count = 0;
};

// Without dims of size 1, and with neighbours merged.
Loop make_loop(const Shape& size, const Strides& target, const Strides& source) {
  Loop loop;
  for (int64_t i = 0; i < size.size(); ++i) {
    const Dim dim{size[i], target[i], source[i]};
    if (dim.size == 1) continue;
    if (loop.count > 0) {
      Dim& outer = loop.dims[static_cast<size_t>(loop.count - 1)];
      if (outer.target == dim.target * dim.size && outer.source == dim.source * dim.size) {
        outer = {outer.size * dim.size, dim.target, dim.source};
        continue;
      }
    }
    loop.dims[static_cast<size_t>(loop.count++)] = dim;
  }
  if (loop.count == 0) loop.dims[static_cast<size_t>(loop.count++)] = {1, 1, 1};
  return loop;
}

template <class T>
void copy_row(const Dim& row, T* target, const T* source) {
  if (row.target == 1 && row.source == 1) {
    std::memcpy(target, source, static_cast<size_t>(row.size) * sizeof(T));
    return;
  }
  for (int64_t i = 0; i < row.size; ++i)
    target[i * row.target] = source[i * row.source];
}

template <class T>
void copy_dims(const Loop& loop, int depth, T* target, const T* source) {
  const Dim& dim = loop.dims[static_cast<size_t>(depth)];
  if (depth == loop.count - 1) {
    copy_row(dim, target, source);
    return;
  }
  for (int64_t i = 0; i < dim.size; ++i)
    copy_dims(loop, depth + 1, target + i * dim.target, source + i * dim.source);
}

template <class T>
void copy_as(const Loop& loop, std::byte* target, const std::byte* source) {
  copy_dims(loop, 0, reinterpret_cast<T*>(target), reinterpret_cast<const T*>(source));
}

int64_t ceil_div(int64_t a, int64_t b) {
  return a >= 0 ? (a + b - 1) / b : -(-a / b);
}

}  // namespace

void copy_box(const Shape& size, const BoxTarget& target, const BoxSource& source,
              size_t element_bytes) {
  if (size.numel() == 0) return;
  const Loop loop = make_loop(size, target.strides, source.strides);
  switch (element_bytes) {
    case 1:
      return copy_as<uint8_t>(loop, target.data, source.data);
    case 2:
      return copy_as<uint16_t>(loop, target.data, source.data);
    case 4:
      return copy_as<uint32_t>(loop, target.data, source.data);
    case 8:
      return copy_as<uint64_t>(loop, target.data, source.data);
    default:
      FLOW_ASSERT(false, "no element has ", element_bytes, " bytes");
  }
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
