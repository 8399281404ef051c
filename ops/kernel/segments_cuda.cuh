// Writes many values to scattered positions on CUDA devices without atomics. The values are sorted
// by position, and those of a position are combined in their original order, in pieces if there are
// many. Therefore sums do not depend on timing, and the last of several writes remains, as on the
// CPU.
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

    // Returns true if position `end`, which is after position `p`, has the same place.
    __device__ bool reaches(int64_t p, int64_t end) const {
      return end < count && sorted[end].place == sorted[p].place;
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
// integers wrap around. In pieces: values may be combined with each other first.
struct AddValues {
  static constexpr bool kInPieces = true;

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

// A thread combines values within pieces of this many, so that a position that very many values go
// to does not keep one thread busy.
inline constexpr int64_t kSegmentPiece = 32;

// Where the values that share a place are, and where they go: values[value_places(index) +
// inner_values(column)] to target[place + inner_target(column)], for `columns` columns.
template <class T>
struct Segments {
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

  __device__ T& result(int64_t p, int64_t column) const {
    return target[places.sorted[p].place + inner_target(column)];
  }
};

// Combines the values of each place within a piece. A place whose values end there is done; of the
// others the first piece is in `tails`, and pieces that go on are in `heads`.
template <class T, class Join>
struct JoinInPieces {
  Segments<T> segments;
  Wide<T>* heads;
  Wide<T>* tails;

  __device__ void operator()(int64_t item) const {
    const auto [p, column] = divide(item, segments.columns);
    const SortedPlaces::View& places = segments.places;
    const bool begins = places.begins(p);
    if (!begins && (p % kSegmentPiece != 0 || places.sorted[p].place < 0)) return;
    const int64_t piece = p / kSegmentPiece;
    const int64_t end = (piece + 1) * kSegmentPiece;
    const bool goes_on = places.reaches(p, end);
    const bool is_whole = begins && !goes_on;
    Wide<T> joined = widen(segments.value(p, column));
    if (is_whole) joined = Join::template join<T>(widen(segments.result(p, column)), joined);
    for (int64_t next = p + 1; next < end && places.continues(next); ++next)
      joined = Join::template join<T>(joined, widen(segments.value(next, column)));
    if (is_whole) {
      segments.result(p, column) = narrow<T>(joined);
    } else {
      (begins ? tails : heads)[piece * segments.columns + column] = joined;
    }
  }
};

// Combines the pieces of each place whose values begin in one piece and end in another.
template <class T, class Join>
struct JoinPieces {
  Segments<T> segments;
  const Wide<T>* heads;
  const Wide<T>* tails;

  __device__ void operator()(int64_t item) const {
    const auto [piece, column] = divide(item, segments.columns);
    const SortedPlaces::View& places = segments.places;
    const int64_t first = piece * kSegmentPiece;
    int64_t next = first + kSegmentPiece;
    if (next >= places.count || !places.continues(next)) return;
    const bool begins_here = places.begins(first) || !places.reaches(first, next);
    if (!begins_here || places.sorted[next].place < 0) return;
    Wide<T> joined = Join::template join<T>(widen(segments.result(next, column)),
                                            tails[piece * segments.columns + column]);
    for (int64_t at = piece + 1;; ++at) {
      joined = Join::template join<T>(joined, heads[at * segments.columns + column]);
      next = (at + 1) * kSegmentPiece;
      if (next >= places.count || !places.continues(next) ||
          places.sorted[next].place != places.sorted[next - kSegmentPiece].place) {
        break;
      }
    }
    segments.result(first + kSegmentPiece, column) = narrow<T>(joined);
  }
};

// Combines the values of each place with what is there, one after the other.
template <class T, class Join>
struct JoinInOrder {
  Segments<T> segments;

  __device__ void operator()(int64_t item) const {
    const auto [p, column] = divide(item, segments.columns);
    if (!segments.places.begins(p)) return;
    Wide<T> joined = widen(segments.result(p, column));
    int64_t next = p;
    do {
      joined = Join::template join<T>(joined, widen(segments.value(next, column)));
    } while (segments.places.continues(++next));
    segments.result(p, column) = narrow<T>(joined);
  }
};

// Combines the values of each place with the target. Requires: `segments` has a value at least.
template <class Join, class T>
void join_segments(const KernelContext& ctx, const Segments<T>& segments) {
  const int64_t count = segments.places.count;
  if constexpr (!Join::kInPieces) {
    return for_each_element(ctx, count * segments.columns, JoinInOrder<T, Join>{segments});
  }
  const int64_t pieces = (count + kSegmentPiece - 1) / kSegmentPiece;
  const ScratchArray<Wide<T>> parts(ctx, 2 * pieces * segments.columns);
  Wide<T>* const heads = parts.data();
  Wide<T>* const tails = heads + pieces * segments.columns;
  for_each_element(ctx, count * segments.columns, JoinInPieces<T, Join>{segments, heads, tails});
  if (pieces > 1) {
    for_each_element(ctx, (pieces - 1) * segments.columns,
                     JoinPieces<T, Join>{segments, heads, tails});
  }
}

// Keeps the last value of each place, bit by bit.
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
