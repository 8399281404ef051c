// One vector register of the file's instruction set (ops/kernel/isa_begin.h), to write a kernel
// once and compile it for each. Include it with the other headers, before ops/kernel/isa_begin.h;
// all names live in flow::ops::isa_*. T is float or double; functions take and return vectors by
// value.
//
//   Vec<T>      kLanes; fill(x) zero() load(p) load_n(p, n, rest = 0); v.store(p) v.store_n(p, n)
//               v.stream(p): past the caches, p aligned to the vector; stream_fence() at the end
//   Mask<T>     of < <= > >= == != (only != is true for NaN), is_nan(v), is_finite(v); & | ~
//               Mask<T>::first(n); any(m) all(m) none(m); bits(m), lane 0 lowest
//   arithmetic  + - * / unary-, fma(a, b, c) = a b + c, fnma(a, b, c) = c - a b (two roundings in
//               baseline), sqrt abs copysign(magnitude, sign) round_even floor ceil trunc
//   select(m, a, b)   a where m, else b
//   min, max          one instruction; b where a or b is NaN: min(limit, x) keeps a NaN of x
//   minimum, maximum  NaN where a or b is NaN, as PyTorch's
//   sum(v) max_of(v) min_of(v)  over the lanes, halves first, so the order depends on kLanes only;
//               max_of and min_of give NaN if a lane is NaN
//   Vec<int32_t>  as many lanes as Vec<float>: fill load store + - & | ^ == < >, shift_left<k>,
//               shift_right<k> (arithmetic), shift_right_logical<k>; its masks are Mask<float>
//   as_int as_float (bits), to_int (nearest even) to_float (values)
//   widen_low(v) widen_high(v): halves of Vec<float> as Vec<double>; narrow(low, high)
//   load(p) store(p, v) load_n(p, n) store_n(p, n, v)  for pointers to float, double, Float16 and
//               BFloat16, the latter two as Vec<float>, rounded to nearest even, NaN kept;
//               VecOf<T> is the vector for elements of type T; n < kLanes
//   polynomial(x, c0, c1, ...)  c0 + c1 x + ... by Horner's rule
//   each_lane(v, f)   f of every lane, through memory: for what has no vector form
//   map(y, n, f, x...)  y[i] = f(x[i]...) for f over VecOf<T>, tails included; y may be one of x,
//               and the pointers may differ in type if the lanes agree
//   map_stream(y, n, f, x...)  with streaming stores, y float or double: for results larger than
//               the last cache
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>

#include "core/dtype.h"
#include "core/float16.h"
#include "ops/kernel/vector_avx2.h"
#include "ops/kernel/vector_avx512.h"
#include "ops/kernel/vector_baseline.h"

#include "ops/kernel/isa_begin.h"

template <class T>
inline Mask<T> operator>(Vec<T> a, Vec<T> b) {
  return b < a;
}

template <class T>
inline Mask<T> operator>=(Vec<T> a, Vec<T> b) {
  return b <= a;
}

inline Mask<float> operator>(Vec<int32_t> a, Vec<int32_t> b) {
  return b < a;
}

template <class T>
inline Mask<T> is_nan(Vec<T> a) {
  return a != a;
}

template <class T>
inline Mask<T> is_finite(Vec<T> a) {
  return abs(a) < Vec<T>::fill(std::numeric_limits<T>::infinity());
}

template <class T>
inline bool any(Mask<T> m) {
  return bits(m) != 0;
}

template <class T>
inline bool none(Mask<T> m) {
  return bits(m) == 0;
}

template <class T>
inline bool all(Mask<T> m) {
  return bits(m) == (1U << Vec<T>::kLanes) - 1U;
}

template <class T>
inline Vec<T> minimum(Vec<T> a, Vec<T> b) {
  return select(is_nan(a), a, min(a, b));
}

template <class T>
inline Vec<T> maximum(Vec<T> a, Vec<T> b) {
  return select(is_nan(a), a, max(a, b));
}

template <class T>
inline T max_of(Vec<T> v) {
  T lanes[Vec<T>::kLanes];
  v.store(lanes);
  for (int64_t half = Vec<T>::kLanes / 2; half > 0; half /= 2)
    for (int64_t i = 0; i < half; ++i) {
      const T a = lanes[i];
      const T b = lanes[i + half];
      lanes[i] = a != a || a > b ? a : b;
    }
  return lanes[0];
}

template <class T>
inline T min_of(Vec<T> v) {
  return -max_of(-v);
}

inline Vec<float> load(const float* p) {
  return Vec<float>::load(p);
}

inline Vec<double> load(const double* p) {
  return Vec<double>::load(p);
}

inline Vec<float> load(const Float16* p) {
  return load_f16(&p->bits);
}

inline Vec<float> load(const BFloat16* p) {
  return as_float(shift_left<16>(load_u16(&p->bits)));
}

inline void store(float* p, Vec<float> v) {
  v.store(p);
}

inline void store(double* p, Vec<double> v) {
  v.store(p);
}

inline void store(Float16* p, Vec<float> v) {
  store_f16(&p->bits, v);
}

inline void store(BFloat16* p, Vec<float> v) {
  using Ints = Vec<int32_t>;
  const Ints pattern = as_int(v);
  const Ints odd = shift_right<16>(pattern) & Ints::fill(1);
  const Ints rounded = pattern + Ints::fill(0x7FFF) + odd;
  const Ints quiet = pattern | Ints::fill(0x00400000);
  store_u16(&p->bits, shift_right_logical<16>(select(is_nan(v), quiet, rounded)));
}

// The vector a kernel over elements of type T computes with.
template <class T>
using VecOf = decltype(load(static_cast<const T*>(nullptr)));

// The first n lanes, n < kLanes; the others are 0.
template <class T>
inline VecOf<T> load_n(const T* p, int64_t n) {
  if constexpr (kIsHalf<T>) {
    T lanes[VecOf<T>::kLanes] = {};
    std::memcpy(lanes, p, static_cast<size_t>(n) * sizeof(T));
    return load(lanes);
  } else {
    return VecOf<T>::load_n(p, n);
  }
}

template <class T>
inline void store_n(T* p, int64_t n, VecOf<T> v) {
  if constexpr (kIsHalf<T>) {
    T lanes[VecOf<T>::kLanes];
    store(lanes, v);
    std::memcpy(p, lanes, static_cast<size_t>(n) * sizeof(T));
  } else {
    v.store_n(p, n);
  }
}

template <class T>
[[gnu::always_inline]] inline Vec<T> polynomial(Vec<T> x, T c) {
  static_cast<void>(x);
  return Vec<T>::fill(c);
}

template <class T, class... C>
[[gnu::always_inline]] inline Vec<T> polynomial(Vec<T> x, T c, C... higher) {
  return fma(polynomial(x, higher...), x, Vec<T>::fill(c));
}

template <class T, class F>
inline Vec<T> each_lane(Vec<T> x, F f) {
  T lanes[Vec<T>::kLanes];
  x.store(lanes);
  for (T& lane : lanes)
    lane = f(lane);
  return Vec<T>::load(lanes);
}

// Two vectors a turn hide the latency of a long f.
template <class Y, class F, class... X>
inline void map(Y* y, int64_t n, F f, const X*... x) {
  constexpr int64_t kLanes = VecOf<Y>::kLanes;
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    const VecOf<Y> low = f(load(x + i)...);
    const VecOf<Y> high = f(load(x + i + kLanes)...);
    store(y + i, low);
    store(y + i + kLanes, high);
  }
  for (; i + kLanes <= n; i += kLanes)
    store(y + i, f(load(x + i)...));
  if (i < n) store_n(y + i, n - i, f(load_n(x + i, n - i)...));
}

// The elements before the first vector boundary of y go first.
template <class T, class F, class... X>
inline void map_stream(T* y, int64_t n, F f, const X*... x) {
  constexpr int64_t kLanes = Vec<T>::kLanes;
  const auto position = static_cast<int64_t>(reinterpret_cast<uintptr_t>(y) / sizeof(T));
  const int64_t before = (kLanes - position % kLanes) % kLanes;
  int64_t i = before < n ? before : n;
  if (i > 0) store_n(y, i, f(load_n(x, i)...));
  for (; i + kLanes <= n; i += kLanes)
    f(load(x + i)...).stream(y + i);
  if (i < n) store_n(y + i, n - i, f(load_n(x + i, n - i)...));
  stream_fence();
}

#include "ops/kernel/isa_end.h"
