// Pooling of planes whose rows are contiguous: each row of outputs is reduced along H first, a
// whole row of x at a time, and then along W. Include it with the other headers, before
// ops/kernel/isa_begin.h; all names live in flow::ops::isa_*.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "ops/conv/pool_state.h"
#include "ops/kernel/row_loops.h"

#include "ops/kernel/isa_begin.h"

// An integer as wide as T, so that both are compared and selected in one register.
template <class T>
using PoolPosition = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

// A row of x with room on both sides for the elements that windows read beyond the ends.
struct PaddedRow {
  explicit PaddedRow(const PoolDim& dim)
      : before(std::max<int64_t>(0, -dim.begin)), size(before + dim.end()) {}

  int64_t before;
  int64_t size;
};

// Calls fn(stride) with the stride between windows, as a constant if it is small.
template <class Fn>
[[gnu::always_inline]] inline void with_stride(int64_t stride, const Fn& fn) {
  if (stride == 1) {
    fn(std::integral_constant<int64_t, 1>());
  } else if (stride == 2) {
    fn(std::integral_constant<int64_t, 2>());
  } else {
    fn(stride);
  }
}

// Calls fn(distance between windows, place in a padded row of the first window's tap) for each tap
// of regular windows.
template <class Fn>
[[gnu::always_inline]] inline void for_window_taps(const PoolDim& dim, const PaddedRow& row,
                                                   const Fn& fn) {
  with_stride(dim.stride, [&](auto stride) {
    for (int64_t k = 0; k < dim.kernel; ++k)
      fn(stride, row.before + dim.begin + k * dim.step);
  });
}

// The maxima of one row of outputs and their positions h * W + w. Among equal elements the first
// wins, among NaNs the last; a window without elements gives -inf and -1.
template <class T>
class RowMaxima {
 public:
  explicit RowMaxima(const PoolState& state)
      : state_(state),
        row_(state.dims[1]),
        column_(static_cast<size_t>(row_.size), kLowest),
        column_at_(column_.size(), kNowhere),
        value_(state.dims[1].taps.size()),
        at_(value_.size()) {}

  void find(const T* x, size_t oh) {
    const PoolTaps& h = state_.dims[0].taps[oh];
    if (h.count > 0) {
      reduce_columns(x, h);
      state_.dims[1].stride > 0 ? reduce_windows() : reduce_uneven_windows();
    }
    for (size_t ow = 0; ow < value_.size(); ++ow) {
      if (h.count > 0 && at_[ow] != kNowhere) continue;
      value_[ow] = kLowest;
      at_[ow] = -1;
    }
  }

  const T* values() const { return value_.data(); }

  const PoolPosition<T>* positions() const { return at_.data(); }

 private:
  using At = PoolPosition<T>;
  static constexpr T kLowest = -std::numeric_limits<T>::infinity();
  static constexpr At kNowhere = std::numeric_limits<At>::max();

  // The largest element of each column. Rows come in order, so an equal element is not first.
  void reduce_columns(const T* x, const PoolTaps& h) {
    const int64_t width = state_.dims[1].in;
    T* const value = column_.data() + row_.before;
    At* const at = column_at_.data() + row_.before;
    const auto base_of = [&](int64_t i) { return (h.first + i * state_.dims[0].step) * width; };
    std::copy_n(x + base_of(0), width, value);
    for (int64_t w = 0; w < width; ++w)
      at[w] = static_cast<At>(base_of(0) + w);
    for (int64_t i = 1; i < h.count; ++i) {
      const T* const row = x + base_of(i);
      const auto base = static_cast<At>(base_of(i));
      for (int64_t w = 0; w < width; ++w) {
        const bool wins = (row[w] > value[w]) | (row[w] != row[w]);
        value[w] = wins ? row[w] : value[w];
        at[w] = wins ? static_cast<At>(base + static_cast<At>(w)) : at[w];
      }
    }
  }

  // Whether the maximum v of a column at p takes the place of that of other columns.
  static bool wins(T v, At p, T best, At at) {
    const bool is_first = (v == best) & (p < at);
    const bool is_last_nan = (v != v) & ((best == best) | (p > at));
    return (v > best) | is_first | is_last_nan;
  }

  void reduce_windows() {
    const auto out = static_cast<int64_t>(value_.size());
    std::fill_n(value_.data(), out, kLowest);
    std::fill_n(at_.data(), out, kNowhere);
    for_window_taps(state_.dims[1], row_, [&](auto stride, int64_t first) {
      const T* const v = column_.data() + first;
      const At* const p = column_at_.data() + first;
      T* const best = value_.data();
      At* const at = at_.data();
      for (int64_t o = 0; o < out; ++o) {
        const bool better = wins(v[o * stride], p[o * stride], best[o], at[o]);
        best[o] = better ? v[o * stride] : best[o];
        at[o] = better ? p[o * stride] : at[o];
      }
    });
  }

  void reduce_uneven_windows() {
    for (size_t ow = 0; ow < value_.size(); ++ow) {
      const PoolTaps& w = state_.dims[1].taps[ow];
      T best = kLowest;
      At at = kNowhere;
      for (int64_t i = w.first; i < w.first + w.count; ++i) {
        const auto place = static_cast<size_t>(row_.before + i);
        if (!wins(column_[place], column_at_[place], best, at)) continue;
        best = column_[place];
        at = column_at_[place];
      }
      value_[ow] = best;
      at_[ow] = at;
    }
  }

  const PoolState& state_;
  PaddedRow row_;
  std::vector<T> column_;  // padding is -inf at kNowhere
  std::vector<At> column_at_;
  std::vector<T> value_;
  std::vector<At> at_;
};

inline double divisor_of(const PoolState& state, size_t oh, size_t ow) {
  return state.divisor != 0 ? state.divisor
                            : state.dims[0].elements[oh] * state.dims[1].elements[ow];
}

// The means of one row of outputs, and the gradients that they pass on.
template <class T>
class RowMeans {
 public:
  explicit RowMeans(const PoolState& state)
      : state_(state),
        row_(state.dims[1]),
        column_(static_cast<size_t>(row_.size), T{0}),
        share_(state.dims[1].taps.size()) {}

  // Writes row oh of the outputs for the plane x.
  void average(const T* x, size_t oh, T* y) {
    const PoolTaps& h = state_.dims[0].taps[oh];
    const PoolDim& dim = state_.dims[1];
    const auto out = static_cast<int64_t>(dim.taps.size());
    if (out == 1 && dim.taps[0].count == dim.in) {
      // Rows that are read whole follow each other.
      y[0] = row_sum<T>(h.count * dim.in, [&](auto at) { return at.get(x + h.first * dim.in); });
    } else {
      sum_columns(x, h);
      dim.stride > 0 ? sum_windows(y) : sum_uneven_windows(y);
    }
    for (int64_t ow = 0; ow < out; ++ow)
      y[ow] /= static_cast<T>(divisor_of(state_, oh, static_cast<size_t>(ow)));
  }

  // Adds the gradients of row oh of the outputs to those of the plane.
  void spread(const T* dy, size_t oh, T* dx) {
    const PoolTaps& h = state_.dims[0].taps[oh];
    const PoolDim& dim = state_.dims[1];
    for (size_t ow = 0; ow < share_.size(); ++ow)
      share_[ow] = dy[ow] / static_cast<T>(divisor_of(state_, oh, ow));
    std::fill(column_.begin(), column_.end(), T{0});
    dim.stride > 0 ? spread_windows() : spread_uneven_windows();
    const T* const column = column_.data() + row_.before;
    for (int64_t i = 0; i < h.count; ++i) {
      T* const target = dx + (h.first + i) * dim.in;
      for (int64_t w = 0; w < dim.in; ++w)
        target[w] += column[w];
    }
  }

 private:
  void sum_columns(const T* x, const PoolTaps& h) {
    const int64_t width = state_.dims[1].in;
    T* const sum = column_.data() + row_.before;
    std::fill_n(sum, width, T{0});
    for (int64_t i = 0; i < h.count; ++i) {
      const T* const row = x + (h.first + i) * width;
      for (int64_t w = 0; w < width; ++w)
        sum[w] += row[w];
    }
  }

  void sum_windows(T* y) const {
    const auto out = static_cast<int64_t>(share_.size());
    std::fill_n(y, out, T{0});
    for_window_taps(state_.dims[1], row_, [&](auto stride, int64_t first) {
      const T* const v = column_.data() + first;
#pragma GCC ivdep
      for (int64_t o = 0; o < out; ++o)
        y[o] += v[o * stride];
    });
  }

  void sum_uneven_windows(T* y) const {
    for (size_t ow = 0; ow < share_.size(); ++ow) {
      const PoolTaps& w = state_.dims[1].taps[ow];
      const T* const first = column_.data() + row_.before + w.first;
      y[ow] = row_sum<T>(w.count, [&](auto at) { return at.get(first); });
    }
  }

  void spread_windows() {
    const auto out = static_cast<int64_t>(share_.size());
    for_window_taps(state_.dims[1], row_, [&](auto stride, int64_t first) {
      T* const v = column_.data() + first;
      const T* const share = share_.data();
#pragma GCC ivdep
      for (int64_t o = 0; o < out; ++o)
        v[o * stride] += share[o];
    });
  }

  void spread_uneven_windows() {
    for (size_t ow = 0; ow < share_.size(); ++ow) {
      const PoolTaps& w = state_.dims[1].taps[ow];
      T* const first = column_.data() + row_.before + w.first;
      for (int64_t i = 0; i < w.count; ++i)
        first[i] += share_[ow];
    }
  }

  const PoolState& state_;
  PaddedRow row_;
  std::vector<T> column_;  // padding is 0
  std::vector<T> share_;
};

#include "ops/kernel/isa_end.h"
