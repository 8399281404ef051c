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

// Products are kept in double throughout: those of parts of the elements may leave the range of
// floats where the whole product does not.
template <class T>
struct ProdFold {
  struct Pair {
    Vec<double> low;
    Vec<double> high;
  };

  static constexpr bool kIsDouble = std::is_same_v<T, double>;
  static constexpr int64_t kHalf = Vec<double>::kLanes;
  using Element = T;
  using Result = T;
  using Wide = double;
  using Sums = std::conditional_t<kIsDouble, Vec<double>, Pair>;

  static Sums start() {
    const Vec<double> ones = Vec<double>::fill(1);
    if constexpr (kIsDouble) {
      return ones;
    } else {
      return {ones, ones};
    }
  }

  static double wide_start() { return 1; }

  static Vec<double> keep_half(Vec<double> v, int64_t n) {
    return select(Mask<double>::first(n < 0 ? 0 : n), v, Vec<double>::fill(1));
  }

  static Sums keep_first(Sums s, int64_t n) {
    if constexpr (kIsDouble) {
      return keep_half(s, n);
    } else {
      return {keep_half(s.low, n), keep_half(s.high, n - kHalf)};
    }
  }

  static Sums take(VecOf<T> v) {
    if constexpr (kIsDouble) {
      return v;
    } else {
      return {widen_low(v), widen_high(v)};
    }
  }

  static Sums join(Sums a, Sums b) {
    if constexpr (kIsDouble) {
      return a * b;
    } else {
      return {a.low * b.low, a.high * b.high};
    }
  }

  static double join(double a, double b) { return a * b; }

#if FLOW_ISA > 0
  // Floats are converted as they are loaded, four at a time: conversions of a register, and to 64
  // bytes, take twice as long.
  static double run(const T* p, int64_t n)

      requires(std::is_same_v<T, float>) {
    constexpr int64_t kTurn = 8 * 4;
    __m256d products[8];
    for (__m256d& product : products)
      product = _mm256_set1_pd(1);
    int64_t i = 0;
    for (; i + kTurn <= n; i += kTurn) {
#pragma GCC unroll 8
      for (int64_t k = 0; k < 8; ++k)
        products[k] = _mm256_mul_pd(products[k], _mm256_cvtps_pd(_mm_loadu_ps(p + i + 4 * k)));
    }
    for (int64_t k = 4; k > 0; k /= 2) {
      for (int64_t j = 0; j < k; ++j)
        products[j] = _mm256_mul_pd(products[j], products[j + k]);
    }
    double lanes[4];
    _mm256_storeu_pd(lanes, products[0]);
    double product = (lanes[0] * lanes[1]) * (lanes[2] * lanes[3]);
    for (; i < n; ++i)
      product *= static_cast<double>(p[i]);
    return product;
  }
#endif

  static double across(Sums s) {
    double lanes[kHalf];
    if constexpr (kIsDouble) {
      s.store(lanes);
    } else {
      (s.low * s.high).store(lanes);
    }
    for (int64_t half = kHalf / 2; half > 0; half /= 2) {
      for (int64_t i = 0; i < half; ++i)
        lanes[i] *= lanes[i + half];
    }
    return lanes[0];
  }

  static void spill(double* w, Sums s) {
    if constexpr (kIsDouble) {
      (Vec<double>::load(w) * s).store(w);
    } else {
      (Vec<double>::load(w) * s.low).store(w);
      (Vec<double>::load(w + kHalf) * s.high).store(w + kHalf);
    }
  }

  static T end(double product, double /*divisor*/) {
    return narrow_sum<T>(product);
  }
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
