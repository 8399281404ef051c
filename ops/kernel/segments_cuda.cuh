// Writes many values to scattered positions on CUDA devices without atomics. The values are sorted
// by position, and one thread handles all values of a position in their original order. Therefore
// sums do not depend on timing, and the last of several writes remains, as on the CPU.
#pragma once

#include "ops/kernel/merge_sort_cuda.cuh"

namespace flow::ops {

// Value number `index` is written to `place`, or nowhere if `place` is negative.
struct PlacedValue {
  int64_t place;
  int64_t index;
};

struct ByPlace {
  __device__ bool operator()(const PlacedValue& a, const PlacedValue& b) const {
    return a.place != b.place ? a.place < b.place : a.index < b.index;
  }
};

// The values sorted by their places.
class SortedPlaces {
 public:
  // `make(entries)` queues a kernel that writes the `count` entries.
  template <class Make>
  SortedPlaces(const KernelContext& ctx, int64_t count, const Make& make)
      : count_(count), entries_(ctx, count), spare_(ctx, count) {
    make(entries_.data());
    sorted_ = merge_sort(ctx, 1, count, entries_.data(), spare_.data(), ByPlace{});
  }

  struct View {
    const PlacedValue* sorted;
    int64_t count;

    // Returns true if position `p` is the first one of a place that is written.
    __device__ bool begins(int64_t p) const {
      return sorted[p].place >= 0 && (p == 0 || sorted[p - 1].place != sorted[p].place);
    }

    // Returns true if position `p` has the same place as the position before it.
    __device__ bool continues(int64_t p) const {
      return p < count && sorted[p].place == sorted[p - 1].place;
    }
  };

  View view() const { return {sorted_, count_}; }

 private:
  int64_t count_;
  ScratchArray<PlacedValue> entries_;
  ScratchArray<PlacedValue> spare_;
  const PlacedValue* sorted_ = nullptr;
};

// Combines values that share a place; `a` is the current value. Bools are combined by "or", and
// integers wrap around.
struct AddValues {
  template <class T>
  static __device__ Wide<T> join(Wide<T> a, Wide<T> b) {
    if constexpr (std::is_same_v<T, bool>) {
      return a || b;
    } else if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    } else {
      return a + b;
    }
  }
};

// Combines values[value_places(index) + inner_values(column)] with target[place +
// inner_target(column)], for `columns` columns of each value.
template <class T, class Join>
struct JoinSegments {
  SortedPlaces::View places;
  int64_t columns;
  const T* values;
  const int64_t* value_places;  // null: index * columns
  Places inner_values;
  T* target;
  Places inner_target;

  const __device__ T& value(int64_t p, int64_t column) const {
    const int64_t index = places.sorted[p].index;
    const int64_t at = value_places != nullptr ? value_places[index] : index * columns;
    return values[at + inner_values(column)];
  }

  __device__ void operator()(int64_t item) const {
    const auto [p, column] = divide(item, columns);
    if (!places.begins(p)) return;
    T& result = target[places.sorted[p].place + inner_target(column)];
    Wide<T> joined = Join::template join<T>(widen(result), widen(value(p, column)));
    for (int64_t next = p + 1; places.continues(next); ++next)
      joined = Join::template join<T>(joined, widen(value(next, column)));
    result = narrow<T>(joined);
  }
};

// The same as JoinSegments, but the last value is kept bit by bit.
template <class T>
struct LastOfSegments {
  SortedPlaces::View places;
  int64_t columns;
  const T* values;
  const int64_t* value_places;  // null: index * columns
  Places inner_values;
  T* target;
  Places inner_target;

  __device__ void operator()(int64_t item) const {
    auto [p, column] = divide(item, columns);
    const int64_t place = places.sorted[p].place;
    if (place < 0 || places.continues(p + 1)) return;
    const int64_t index = places.sorted[p].index;
    const int64_t at = value_places != nullptr ? value_places[index] : index * columns;
    target[place + inner_target(column)] = values[at + inner_values(column)];
  }
};

// The offset of the j-th of `columns` neighbours, which are contiguous.
inline Places dense_places(int64_t columns) {
  return {Shape{columns}, Strides{1}};
}

}  // namespace flow::ops
