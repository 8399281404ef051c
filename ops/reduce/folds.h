// What fast reductions compute: Folds for the loops of ops/reduce/reduce_loops.h. 16-bit floats are
// widened to float as they are loaded.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/float16.h"
#include "ops/kernel/vector.h"

#include "ops/kernel/isa_begin.h"

template <class T>
inline constexpr bool is_float16 = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
// The type in which elements are compared.
template <class T>
using Compared = std::conditional_t<is_float16<T>, float, T>;

template <class T>
T narrow_sum(double sum) {
  if constexpr (std::is_same_v<T, double>) {
    return sum;
  } else {
    return T(static_cast<float>(sum));
  }
}

// Sums are kept in vectors of the elements' width within a block, and in double between blocks.
template <class T>
struct SumFold {
  using Element = T;
  using Result = T;
  using Wide = double;
  using V = VecOf<T>;
  using Sums = V;

  static V start() { return V::zero(); }

  static double wide_start() { return 0; }

  static V keep_first(V v, int64_t /*n*/) { return v; }

  static V take(V v) { return v; }

  static V join(V a, V b) { return a + b; }

  static double join(double a, double b) { return a + b; }

  static double across(V v) { return static_cast<double>(sum(v)); }

  static void spill(double* w, V v) {
    if constexpr (std::is_same_v<T, double>) {
      (V::load(w) + v).store(w);
    } else {
      constexpr int64_t kHalf = Vec<double>::kLanes;
      (Vec<double>::load(w) + widen_low(v)).store(w);
      (Vec<double>::load(w + kHalf) + widen_high(v)).store(w + kHalf);
    }
  }

  static T end(double sum, double divisor) {
    return narrow_sum<T>(divisor == 1 ? sum : sum / divisor);
  }
};

template <class T>
struct NansumFold : SumFold<T> {
  using V = VecOf<T>;

  static V take(V v) { return select(v == v, v, V::zero()); }
};

// Sums of Term::of(x), which is 0 for x = 0, kept in double throughout: squares of floats may be
// too large or too small for a float.
template <class T, class Term>
struct TermFold {
  struct Pair {
    Vec<double> low;
    Vec<double> high;
  };

  static constexpr bool kIsDouble = std::is_same_v<T, double>;
  using Element = T;
  using Result = T;
  using Wide = double;
  using Sums = std::conditional_t<kIsDouble, Vec<double>, Pair>;

  static Sums start() {
    if constexpr (kIsDouble) {
      return Vec<double>::zero();
    } else {
      return {Vec<double>::zero(), Vec<double>::zero()};
    }
  }

  static double wide_start() { return 0; }

  static Sums keep_first(Sums s, int64_t /*n*/) { return s; }

  static Sums take(VecOf<T> v) {
    if constexpr (kIsDouble) {
      return Term::of(v);
    } else {
      return {Term::of(widen_low(v)), Term::of(widen_high(v))};
    }
  }

  static Sums join(Sums a, Sums b) {
    if constexpr (kIsDouble) {
      return a + b;
    } else {
      return {a.low + b.low, a.high + b.high};
    }
  }

  static double join(double a, double b) { return a + b; }

  static double across(Sums s) {
    if constexpr (kIsDouble) {
      return sum(s);
    } else {
      return sum(s.low + s.high);
    }
  }

  static void spill(double* w, Sums s) {
    if constexpr (kIsDouble) {
      (Vec<double>::load(w) + s).store(w);
    } else {
      constexpr int64_t kHalf = Vec<double>::kLanes;
      (Vec<double>::load(w) + s.low).store(w);
      (Vec<double>::load(w + kHalf) + s.high).store(w + kHalf);
    }
  }

  static T end(double sum, double /*divisor*/) { return narrow_sum<T>(Term::end(sum)); }
};

// The value that every other value replaces.
template <class T, bool kMax>
constexpr Compared<T> worst() {
  using C = Compared<T>;
  if constexpr (std::is_floating_point_v<C>) {
    return kMax ? -std::numeric_limits<C>::infinity() : std::numeric_limits<C>::infinity();
  } else {
    return kMax ? std::numeric_limits<C>::lowest() : std::numeric_limits<C>::max();
  }
}

// Returns true if a replaces b: if it is larger (smaller), or if it is the first NaN.
template <bool kMax, class C>
bool beats(C a, C b) {
  if constexpr (std::is_floating_point_v<C>) {
    if (a != a) return b == b;
  }
  return kMax ? a > b : a < b;
}

template <class T, bool kMax>
struct ExtremumFold {
  using Element = T;
  using Result = T;
  using V = VecOf<T>;
  using Sums = V;
  using Wide = Compared<T>;

  static V start() { return V::fill(wide_start()); }

  static Wide wide_start() { return worst<T, kMax>(); }

  static V keep_first(V v, int64_t n) { return select(Mask<Wide>::first(n), v, start()); }

  static V take(V v) { return v; }

  static V join(V a, V b) { return kMax ? maximum(a, b) : minimum(a, b); }

  static Wide join(Wide a, Wide b) { return beats<kMax>(b, a) ? b : a; }

  static Wide across(V v) { return kMax ? max_of(v) : min_of(v); }

  static void spill(Wide* w, V v) { join(V::load(w), v).store(w); }

  static T end(Wide best, double /*divisor*/) { return T(best); }
};

// Integers and bools.
template <class T, bool kMax>
struct IntegerExtremumFold {
  using Element = T;
  using Result = T;
  using Wide = T;

  static T wide_start() { return worst<T, kMax>(); }

  static T take(T x) { return x; }

  static T join(T a, T b) { return beats<kMax>(b, a) ? b : a; }

  static T end(T best, double /*divisor*/) { return best; }
};

template <class T>
using MaxFold = ExtremumFold<T, true>;
template <class T>
using MinFold = ExtremumFold<T, false>;

#include "ops/kernel/isa_end.h"
