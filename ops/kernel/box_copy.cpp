#include "ops/kernel/box_copy.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/error.h"
#include "core/thread_pool.h"
#include "ops/kernel/divide_up.h"

namespace flow::ops {

namespace {

constexpr int64_t kGrain = 1 << 14;  // elements

// Rows whose length the compiler knows are copied without a call.
template <size_t kBytes>
void copy_rows_of(int64_t rows, std::byte* target, int64_t target_step, const std::byte* source,
                  int64_t source_step) {
  for (int64_t i = 0; i < rows; ++i)
    std::memcpy(target + i * target_step, source + i * source_step, kBytes);
}

// Rows of `bytes` bytes that are dense on both sides; the steps are in bytes.
void copy_dense_rows(int64_t rows, size_t bytes, std::byte* target, int64_t target_step,
                     const std::byte* source, int64_t source_step) {
  switch (bytes) {
    case 32:
      return copy_rows_of<32>(rows, target, target_step, source, source_step);
    case 64:
      return copy_rows_of<64>(rows, target, target_step, source, source_step);
    case 128:
      return copy_rows_of<128>(rows, target, target_step, source, source_step);
    case 256:
      return copy_rows_of<256>(rows, target, target_step, source, source_step);
    default:
      for (int64_t i = 0; i < rows; ++i)
        std::memcpy(target + i * target_step, source + i * source_step, bytes);
  }
}

}  // namespace

BoxLoop::BoxLoop(const Shape& size, const Strides& target, const Strides& source,
                 size_t element_bytes)
    : is_empty_(size.numel() == 0), element_bytes_(element_bytes) {
  for (int64_t i = 0; i < size.size(); ++i) {
    const Dim dim{size[i], target[i], source[i]};
    if (dim.size == 1) continue;
    if (count_ > 0) {
      Dim& outer = dims_[count_ - 1];
      if (outer.target == dim.target * dim.size && outer.source == dim.source * dim.size) {
        outer = {outer.size * dim.size, dim.target, dim.source};
        continue;
      }
    }
    dims_[count_++] = dim;
  }
  if (count_ == 0) dims_[count_++] = {1, 1, 1};
}

template <class T>
void BoxLoop::copy_dims(size_t depth, int64_t size, T* target, const T* source) const {
  constexpr auto kBytes = static_cast<int64_t>(sizeof(T));
  const Dim& dim = dims_[depth];
  const Dim& row = dims_[count_ - 1];
  const bool is_dense = row.target == 1 && row.source == 1;
  if (depth == count_ - 1) {
    if (is_dense) {
      std::memcpy(target, source, static_cast<size_t>(size) * sizeof(T));
    } else {
      for (int64_t i = 0; i < size; ++i)
        target[i * dim.target] = source[i * dim.source];
    }
  } else if (depth == count_ - 2 && is_dense) {
    copy_dense_rows(size, static_cast<size_t>(row.size) * sizeof(T),
                    reinterpret_cast<std::byte*>(target), dim.target * kBytes,
                    reinterpret_cast<const std::byte*>(source), dim.source * kBytes);
  } else {
    for (int64_t i = 0; i < size; ++i) {
      copy_dims(depth + 1, dims_[depth + 1].size, target + i * dim.target, source + i * dim.source);
    }
  }
}

void BoxLoop::copy_range(size_t depth, int64_t begin, int64_t end, std::byte* target,
                         const std::byte* source) const {
  const auto copy_as = [&]<class T>() {
    copy_dims(depth, end - begin, reinterpret_cast<T*>(target) + begin * dims_[depth].target,
              reinterpret_cast<const T*>(source) + begin * dims_[depth].source);
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

void BoxLoop::copy(std::byte* target, const std::byte* source) const {
  if (!is_empty_) copy_range(0, 0, dims_[0].size, target, source);
}

// The outermost dim is divided among threads, or the next one if it is too short.
void BoxLoop::copy(ThreadPool& pool, std::byte* target, const std::byte* source) const {
  if (is_empty_) return;
  constexpr int64_t kEnough = 8;
  const size_t depth = count_ > 1 && dims_[0].size < kEnough ? 1 : 0;
  int64_t inside = 1;
  for (size_t d = depth + 1; d < count_; ++d)
    inside *= dims_[d].size;
  const auto bytes = static_cast<int64_t>(element_bytes_);
  for (int64_t i = 0; i < (depth == 1 ? dims_[0].size : 1); ++i) {
    pool.parallel_for(0, dims_[depth].size, std::max<int64_t>(1, kGrain / inside),
                      [&](int64_t begin, int64_t end) {
                        copy_range(depth, begin, end, target + i * dims_[0].target * bytes,
                                   source + i * dims_[0].source * bytes);
                      });
  }
}

void copy_box(ThreadPool& pool, const Shape& size, const BoxTarget& target, const BoxSource& source,
              size_t element_bytes) {
  BoxLoop(size, target.strides, source.strides, element_bytes).copy(pool, target.data, source.data);
}

void copy_box(const Shape& size, const BoxTarget& target, const BoxSource& source,
              size_t element_bytes) {
  BoxLoop(size, target.strides, source.strides, element_bytes).copy(target.data, source.data);
}

void copy_part(const TensorView& target, const TensorView& source) {
  copy_box(target.shape(), {target.data, target.strides()}, {source.data, source.strides()},
           dtype_size(target.meta->dtype));
}

void copy_part(ThreadPool& pool, const TensorView& target, const TensorView& source) {
  copy_box(pool, target.shape(), {target.data, target.strides()}, {source.data, source.strides()},
           dtype_size(target.meta->dtype));
}

void zero_part(const TensorView& target) {
  if (target.numel() > 0) {
    std::memset(target.data, 0,
                static_cast<size_t>(target.numel()) * dtype_size(target.meta->dtype));
  }
}

Range indices_inside(Range indices, int64_t start, int64_t step, Range positions) {
  const int64_t first = divide_up(positions.begin - start, step);
  const int64_t end = divide_up(positions.begin + positions.size - start, step);
  const int64_t begin = std::max(indices.begin, first);
  return {begin, std::max<int64_t>(0, std::min(indices.begin + indices.size, end) - begin)};
}

Range local_range(const TensorMeta& meta, int64_t dim) {
  return {meta.local_begin[dim], meta.local_shape[dim]};
}

}  // namespace flow::ops
