// Copies of planes: dense, repeated, reversed and transposed rows have loops of their own.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "ops/kernel/copy_bytes.h"
#include "ops/kernel/plane_copy.h"

#include "ops/kernel/isa_begin.h"

namespace {

template <class T>
void copy_dense(T* y, const T* x, const Plane& plane) {
  const size_t bytes = static_cast<size_t>(plane.columns) * sizeof(T);
  for (int64_t r = 0; r < plane.rows; ++r) {
    copy_bytes(reinterpret_cast<std::byte*>(y + r * plane.target_row),
               reinterpret_cast<const std::byte*>(x + r * plane.source_row), bytes);
  }
}

// ---- dense, repeated and reversed rows

template <class T>
void copy_repeated(T* y, const T* x, const Plane& plane) {
  for (int64_t r = 0; r < plane.rows; ++r) {
    const T value = x[r * plane.source_row];
    T* row = y + r * plane.target_row;
    for (int64_t c = 0; c < plane.columns; ++c)
      row[c] = value;
  }
}

template <class T, size_t... kLane>
[[gnu::always_inline]] inline auto reversed(LanesOf<T, kWidest> v,
                                            std::index_sequence<kLane...> /*lanes*/) {
  return __builtin_shufflevector(v, v, (sizeof...(kLane) - 1 - kLane)...);
}

template <class T>
void copy_reversed(T* y, const T* x, const Plane& plane) {
  using V = LanesOf<T, kWidest>;
  constexpr auto kLanes = static_cast<int64_t>(kWidest / sizeof(T));
  for (int64_t r = 0; r < plane.rows; ++r) {
    T* to = y + r * plane.target_row;
    const T* from = x + r * plane.source_row;
    int64_t c = 0;
    for (; c + kLanes <= plane.columns; c += kLanes) {
      const V v = load_lanes<V>(from - c - (kLanes - 1));
      store_lanes(to + c, reversed<T>(v, std::make_index_sequence<kLanes>()));
    }
    for (; c < plane.columns; ++c)
      to[c] = from[-c];
  }
}

// ---- transposed rows: the source is dense along the rows' direction

// Vector i of a turn is half of two vectors of the turn before, interleaved.
template <size_t kHalf, class V, size_t... kLane>
[[gnu::always_inline]] inline V interleave(V a, V b, std::index_sequence<kLane...> /*lanes*/) {
  constexpr size_t kLanes = sizeof...(kLane);
  return __builtin_shufflevector(a, b, (kLane / 2 + kHalf * kLanes / 2 + kLane % 2 * kLanes)...);
}

template <class V, size_t kLanes, size_t... kVector>
[[gnu::always_inline]] inline std::array<V, kLanes> interleaved(
    const std::array<V, kLanes>& v, std::index_sequence<kVector...> /*vectors*/) {
  return {interleave<kVector % 2>(v[kVector / 2], v[kVector / 2 + kLanes / 2],
                                  std::make_index_sequence<kLanes>())...};
}

// After log2(kLanes) turns the square is transposed.
template <class V, size_t kLanes, size_t kTurns = kLanes>
[[gnu::always_inline]] inline std::array<V, kLanes> transposed(const std::array<V, kLanes>& v) {
  if constexpr (kTurns == 1) {
    return v;
  } else {
    return transposed<V, kLanes, kTurns / 2>(interleaved(v, std::make_index_sequence<kLanes>()));
  }
}

template <class V, class T, size_t... kVector>
[[gnu::always_inline]] inline void copy_square(T* y, int64_t y_row, const T* x, int64_t x_column,
                                               std::index_sequence<kVector...> /*vectors*/) {
  const auto v = transposed<V, sizeof...(kVector)>(
      {load_lanes<V>(x + static_cast<int64_t>(kVector) * x_column)...});
  (store_lanes(y + static_cast<int64_t>(kVector) * y_row, v[kVector]), ...);
}

// The squares of kSide elements in rows [0, rows) and columns [begin, columns); returns the column
// at which they end.
template <size_t kSide, class T>
[[gnu::always_inline]] inline int64_t copy_squares(T* y, const T* x, int64_t begin,
                                                   const Plane& plane) {
  using V = LanesOf<T, kSide * sizeof(T)>;
  constexpr auto kStep = static_cast<int64_t>(kSide);
  int64_t c = begin;
  for (; c + kStep <= plane.columns; c += kStep) {
    copy_square<V>(y + c, plane.target_row, x + c * plane.source_column, plane.source_column,
                   std::make_index_sequence<kSide>());
  }
  return c;
}

template <class T>
void copy_scattered(T* y, const T* x, const Plane& plane) {
  for (int64_t r = 0; r < plane.rows; ++r) {
    for (int64_t c = 0; c < plane.columns; ++c)
      y[r * plane.target_row + c * plane.target_column] =
          x[r * plane.source_row + c * plane.source_column];
  }
}

// Few columns: each row is written at once, from as many streams of the source.
template <int64_t kColumns, class T>
void copy_columns(T* y, const T* x, const Plane& plane) {
  if (plane.target_row == kColumns) {
    for (int64_t r = 0; r < plane.rows; ++r) {
#pragma GCC unroll 4
      for (int64_t c = 0; c < kColumns; ++c)
        y[r * kColumns + c] = x[c * plane.source_column + r];
    }
  } else {
    copy_scattered(y, x, plane);
  }
}

template <class T>
void copy_transposed(T* y, const T* x, const Plane& plane) {
  // A square of 16 elements or one vector: it reads whole cache lines of 4-byte elements.
  constexpr size_t kSide = std::min<size_t>(16, kWidest / sizeof(T));
  constexpr size_t kSmall = std::max<size_t>(2, 16 / sizeof(T)) < kSide ? 16 / sizeof(T) : 0;
  if (plane.columns == 2) return copy_columns<2>(y, x, plane);
  if (plane.columns == 3) return copy_columns<3>(y, x, plane);
  if (plane.columns == 4) return copy_columns<4>(y, x, plane);
  constexpr auto kRows = static_cast<int64_t>(kSide);
  int64_t r = 0;
  for (; r + kRows <= plane.rows; r += kRows) {
    Plane edge = plane;
    edge.rows = kRows;
    int64_t c = copy_squares<kSide>(y + r * plane.target_row, x + r, 0, plane);
    if constexpr (kSmall > 0) {
      const int64_t begin = c;
      for (int64_t i = 0; i < kRows; i += static_cast<int64_t>(kSmall))
        c = copy_squares<kSmall>(y + (r + i) * plane.target_row, x + r + i, begin, plane);
    }
    edge.columns = plane.columns - c;
    copy_scattered(y + r * plane.target_row + c, x + r + c * plane.source_column, edge);
  }
  Plane rest = plane;
  rest.rows = plane.rows - r;
  copy_scattered(y + r * plane.target_row, x + r, rest);
}

// ---- the choice

template <class T>
void copy_plane(const Plane& plane) {
  T* y = reinterpret_cast<T*>(plane.target);
  const T* x = reinterpret_cast<const T*>(plane.source);
  if (plane.target_column != 1) return copy_scattered(y, x, plane);
  switch (plane.source_column) {
    case 1:
      return copy_dense(y, x, plane);
    case 0:
      return copy_repeated(y, x, plane);
    case -1:
      return copy_reversed(y, x, plane);
    default:
      return plane.source_row == 1 ? copy_transposed(y, x, plane) : copy_scattered(y, x, plane);
  }
}

}  // namespace

PlaneCopy plane_copy_of(size_t element_bytes) {
  switch (element_bytes) {
    case 1:
      return copy_plane<uint8_t>;
    case 2:
      return copy_plane<uint16_t>;
    case 4:
      return copy_plane<uint32_t>;
    case 8:
      return copy_plane<uint64_t>;
    default:
      FLOW_ASSERT(false, "no element has ", element_bytes, " bytes");
  }
}

#include "ops/kernel/isa_end.h"
