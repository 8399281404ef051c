// Loops over contiguous rows with Vec: sums and maxima whose order depends on the row's length and
// the number of lanes only. Include it with the other headers, before ops/kernel/isa_begin.h; all
// names live in flow::ops::isa_*.
//
// A body takes the place it works at, a WholeVector or, at the end of a row, a PartVector:
//
//   const float total = row_sum<float>(n, [&](auto at) { return at.keep(exp(at.get(x)), 0); });
//   for_row<float>(n, [&](auto at) { at.put(y, at.get(x) * scale); });
#pragma once

#include <array>
#include <cstdint>
#include <limits>

#include "ops/kernel/vector.h"

#include "ops/kernel/isa_begin.h"

template <class C>
struct WholeVector {
  int64_t at;

  template <class X>
  [[gnu::always_inline]] VecOf<X> get(const X* x) const {
    return load(x + at);
  }

  template <class X>
  [[gnu::always_inline]] void put(X* x, VecOf<X> v) const {
    store(x + at, v);
  }

  // Returns `v` with the lanes beyond the row replaced; a whole vector has no such lanes.
  [[gnu::always_inline]] Vec<C> keep(Vec<C> v, C /*rest*/) const { return v; }
};

// Lanes beyond the row are read as 0 and not written.
template <class C>
struct PartVector {
  int64_t at;
  int64_t count;

  template <class X>
  VecOf<X> get(const X* x) const {
    return load_n(x + at, count);
  }

  template <class X>
  void put(X* x, VecOf<X> v) const {
    store_n(x + at, count, v);
  }

  Vec<C> keep(Vec<C> v, C rest) const {
    return select(Mask<C>::first(count), v, Vec<C>::fill(rest));
  }
};

template <class C, class F>
inline void for_row(int64_t n, const F& f) {
  constexpr int64_t kLanes = Vec<C>::kLanes;
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    f(WholeVector<C>{i});
    f(WholeVector<C>{i + kLanes});
  }
  for (; i + kLanes <= n; i += kLanes)
    f(WholeVector<C>{i});
  if (i < n) f(PartVector<C>{i, n - i});
}

// Several sums that are computed in one pass.
template <class C, size_t kCount>
struct Sums {
  std::array<Vec<C>, kCount> term;

  static Sums zero() {
    Sums sums;
    sums.term.fill(Vec<C>::zero());
    return sums;
  }

  [[gnu::always_inline]] friend Sums operator+(Sums a, const Sums& b) {
    for (size_t i = 0; i < kCount; ++i)
      a.term[i] = a.term[i] + b.term[i];
    return a;
  }
};

// The lane sums of f over a row, as f returns them: Vec<C> or Sums. Four chains hide the latency of
// an addition; each runs over at most 64 terms, so that rounding errors grow with 64 + n / (256
// kLanes) and not with n.
template <class C, class F>
inline auto row_sum_lanes(int64_t n, const F& f) {
  using Sum = decltype(f(WholeVector<C>{0}));
  constexpr int64_t kLanes = Vec<C>::kLanes;
  constexpr int64_t kStretch = 256 * kLanes;
  Sum total = Sum::zero();
  int64_t i = 0;
  while (i + 4 * kLanes <= n) {
    const int64_t end = n - i < kStretch ? n : i + kStretch;
    Sum s0 = Sum::zero();
    Sum s1 = s0;
    Sum s2 = s0;
    Sum s3 = s0;
    for (; i + 4 * kLanes <= end; i += 4 * kLanes) {
      s0 = s0 + f(WholeVector<C>{i});
      s1 = s1 + f(WholeVector<C>{i + kLanes});
      s2 = s2 + f(WholeVector<C>{i + 2 * kLanes});
      s3 = s3 + f(WholeVector<C>{i + 3 * kLanes});
    }
    total = total + ((s0 + s1) + (s2 + s3));
  }
  for (; i + kLanes <= n; i += kLanes)
    total = total + f(WholeVector<C>{i});
  if (i < n) total = total + f(PartVector<C>{i, n - i});
  return total;
}

template <class C, class F>
inline C row_sum(int64_t n, const F& f) {
  return sum(row_sum_lanes<C>(n, f));
}

// The maximum of f over a row, or -inf for an empty row. A NaN may be ignored.
template <class C, class F>
inline C row_max(int64_t n, const F& f) {
  constexpr int64_t kLanes = Vec<C>::kLanes;
  constexpr C kLowest = -std::numeric_limits<C>::infinity();
  Vec<C> m0 = Vec<C>::fill(kLowest);
  Vec<C> m1 = m0;
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    m0 = max(f(WholeVector<C>{i}), m0);
    m1 = max(f(WholeVector<C>{i + kLanes}), m1);
  }
  for (; i + kLanes <= n; i += kLanes)
    m0 = max(f(WholeVector<C>{i}), m0);
  if (i < n) {
    const PartVector<C> at{i, n - i};
    m0 = max(at.keep(f(at), kLowest), m0);
  }
  return max_of(max(m0, m1));
}

#include "ops/kernel/isa_end.h"
