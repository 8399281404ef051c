// Merge sort on CUDA devices: runs of 32 elements are sorted by counting and then merged; in each
// merge an element finds its rank in the other run by bisection. It makes log2(n / 32) + 1 passes
// over memory. The order is total, so the result does not depend on timing.
#pragma once

#include "ops/kernel/rows_cuda.cuh"

namespace flow::ops {

inline constexpr int64_t kSortedRun = 32;

template <class Entry, class Before>
struct SortRuns {
  const Entry* from;
  Entry* to;
  int64_t size;
  Before before;

  __device__ void operator()(int64_t i) const {
    const auto [line, at] = divide(i, size);
    const int64_t begin = at / kSortedRun * kSortedRun;
    const int64_t end = std::min(size, begin + kSortedRun);
    const Entry* const entries = from + line * size;
    const Entry own = from[i];
    int64_t rank = 0;
    for (int64_t k = begin; k < end; ++k)
      rank += before(entries[k], own) ? 1 : 0;
    to[line * size + begin + rank] = own;
  }
};

template <class Entry, class Before>
struct MergeRuns {
  const Entry* from;
  Entry* to;
  int64_t size;
  int64_t width;
  Before before;

  __device__ void operator()(int64_t i) const {
    const auto [line, at] = divide(i, size);
    const int64_t run = at / width;
    const int64_t other = (run ^ 1) * width;
    const Entry* const entries = from + line * size;
    const Entry own = from[i];
    int64_t low = std::min(other, size);
    int64_t high = std::min(other + width, size);
    const int64_t first = low;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (before(entries[middle], own)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    to[line * size + (run & ~int64_t{1}) * width + (at - run * width) + (low - first)] = own;
  }
};

// Sorts `lines` lines of `size` entries, which follow each other in `entries`. `before` is a strict
// total order: no two entries are equal. The result is in one of the two arrays.
template <class Entry, class Before>
Entry* merge_sort(const KernelContext& ctx, int64_t lines, int64_t size, Entry* entries,
                  Entry* spare, Before before) {
  const int64_t count = lines * size;
  for_each_element(ctx, count, SortRuns<Entry, Before>{entries, spare, size, before});
  std::swap(entries, spare);
  for (int64_t width = kSortedRun; width < size; width *= 2) {
    for_each_element(ctx, count, MergeRuns<Entry, Before>{entries, spare, size, width, before});
    std::swap(entries, spare);
  }
  return entries;
}

}  // namespace flow::ops
