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

int64_t distance(int64_t stride) {
  return stride < 0 ? -stride : stride;
}

}  // namespace

BoxLoop::BoxLoop(const Shape& size, const Strides& target, const Strides& source,
                 size_t element_bytes)
    : is_empty_(size.numel() == 0),
      element_bytes_(static_cast<int64_t>(element_bytes)),
      copy_(plane_copy(element_bytes)) {
  std::array<Dim, kMaxDims> given;
  size_t num_given = 0;
  for (int64_t i = 0; i < size.size(); ++i) {
    if (size[i] != 1) given[num_given++] = {size[i], target[i], source[i]};
  }
  const auto given_end = given.begin() + static_cast<std::ptrdiff_t>(num_given);
  std::stable_sort(given.begin(), given_end, [](const Dim& a, const Dim& b) {
    return distance(a.target) > distance(b.target);
  });
  for (auto dim = given.begin(); dim != given_end; ++dim) {
    if (count_ > 0) {
      Dim& outer = dims_[count_ - 1];
      if (outer.target == dim->target * dim->size && outer.source == dim->source * dim->size) {
        outer = {outer.size * dim->size, dim->target, dim->source};
        continue;
      }
    }
    dims_[count_++] = *dim;
  }
  if (count_ == 0) dims_[count_++] = {1, 1, 1};
  if (count_ == 1) {
    dims_[1] = dims_[0];
    dims_[0] = {1, 0, 0};
    ++count_;
  }
  const Dim& columns = dims_[count_ - 1];
  if (distance(columns.source) <= 1) return;
  const auto rows = std::find_if(dims_.begin(), dims_.begin() + static_cast<std::ptrdiff_t>(count_),
                                 [](const Dim& dim) { return dim.source == 1; });
  const auto last = dims_.begin() + static_cast<std::ptrdiff_t>(count_) - 1;
  if (rows < last) std::rotate(rows, rows + 1, last);
}

void BoxLoop::copy_range(size_t depth, int64_t begin, int64_t end, std::byte* target,
                         const std::byte* source) const {
  const Dim& dim = dims_[depth];
  const Dim& columns = dims_[count_ - 1];
  if (depth + 1 == count_) {
    copy_({target + begin * dim.target * element_bytes_,
           source + begin * dim.source * element_bytes_, 1, end - begin, 0, dim.target, 0,
           dim.source});
  } else if (depth + 2 == count_) {
    copy_({target + begin * dim.target * element_bytes_,
           source + begin * dim.source * element_bytes_, end - begin, columns.size, dim.target,
           columns.target, dim.source, columns.source});
  } else {
    for (int64_t i = begin; i < end; ++i) {
      copy_range(depth + 1, 0, dims_[depth + 1].size, target + i * dim.target * element_bytes_,
                 source + i * dim.source * element_bytes_);
    }
  }
}

void BoxLoop::copy(std::byte* target, const std::byte* source) const {
  if (!is_empty_) copy_range(0, 0, dims_[0].size, target, source);
}

// The outermost dim is divided among threads, or the next one if it is too short.
void BoxLoop::copy(ThreadPool& pool, std::byte* target, const std::byte* source) const {
  if (is_empty_) return;
  constexpr int64_t kEnough = 8;
  const size_t depth = dims_[0].size < kEnough ? 1 : 0;
  int64_t inside = 1;
  for (size_t d = depth + 1; d < count_; ++d)
    inside *= dims_[d].size;
  for (int64_t i = 0; i < (depth == 1 ? dims_[0].size : 1); ++i) {
    pool.parallel_for(0, dims_[depth].size, std::max<int64_t>(1, kGrain / inside),
                      [&](int64_t begin, int64_t end) {
                        copy_range(depth, begin, end, target + i * dims_[0].target * element_bytes_,
                                   source + i * dims_[0].source * element_bytes_);
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
