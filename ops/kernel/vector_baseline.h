// Vec and Mask of ops/kernel/vector.h for any CPU: 16-byte vectors by the compiler's vector
// extensions, with SSE2 where it has an instruction that the extensions cannot spell.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#if !defined(FLOW_ISA) || FLOW_ISA == 0

#include "ops/kernel/isa_begin.h"

using Float4 = float __attribute__((vector_size(16)));
using Double2 = double __attribute__((vector_size(16)));
using Int4 = int32_t __attribute__((vector_size(16)));
using UInt4 = uint32_t __attribute__((vector_size(16)));
using Long2 = int64_t __attribute__((vector_size(16)));

template <class T>
struct Vec;
template <class T>
struct Mask;

// A lane of a mask is all ones or all zeros.
template <>
struct Mask<float> {
  Int4 reg;

  static Mask first(int64_t n) { return {Int4{0, 1, 2, 3} < static_cast<int32_t>(n)}; }
};

template <>
struct Mask<double> {
  Long2 reg;

  static Mask first(int64_t n) { return {Long2{0, 1} < n}; }
};

template <>
struct Vec<int32_t> {
  static constexpr int64_t kLanes = 4;
  Int4 reg;

  static Vec fill(int32_t x) { return {Int4{x, x, x, x}}; }

  static Vec load(const int32_t* p) {
    Vec v;
    std::memcpy(&v.reg, p, sizeof(v.reg));
    return v;
  }

  void store(int32_t* p) const { std::memcpy(p, &reg, sizeof(reg)); }
};

template <>
struct Vec<float> {
  static constexpr int64_t kLanes = 4;
  Float4 reg;

  static Vec fill(float x) { return {Float4{x, x, x, x}}; }

  static Vec zero() { return {Float4{}}; }

  static Vec load(const float* p) {
    Vec v;
    std::memcpy(&v.reg, p, sizeof(v.reg));
    return v;
  }

  static Vec load_n(const float* p, int64_t n, float rest = 0) {
    Vec v = fill(rest);
    for (int64_t i = 0; i < kLanes; ++i)
      if (i < n) v.reg[i] = p[i];
    return v;
  }

  void store(float* p) const { std::memcpy(p, &reg, sizeof(reg)); }

  void store_n(float* p, int64_t n) const {
    for (int64_t i = 0; i < kLanes; ++i)
      if (i < n) p[i] = reg[i];
  }

  void stream(float* p) const {
#if defined(__SSE2__)
    _mm_stream_ps(p, reg);
#else
    store(p);
#endif
  }
};

template <>
struct Vec<double> {
  static constexpr int64_t kLanes = 2;
  Double2 reg;

  static Vec fill(double x) { return {Double2{x, x}}; }

  static Vec zero() { return {Double2{}}; }

  static Vec load(const double* p) {
    Vec v;
    std::memcpy(&v.reg, p, sizeof(v.reg));
    return v;
  }

  static Vec load_n(const double* p, int64_t n, double rest = 0) {
    Vec v = fill(rest);
    for (int64_t i = 0; i < kLanes; ++i)
      if (i < n) v.reg[i] = p[i];
    return v;
  }

  void store(double* p) const { std::memcpy(p, &reg, sizeof(reg)); }

  void store_n(double* p, int64_t n) const {
    for (int64_t i = 0; i < kLanes; ++i)
      if (i < n) p[i] = reg[i];
  }

  void stream(double* p) const {
#if defined(__SSE2__)
    _mm_stream_pd(p, reg);
#else
    store(p);
#endif
  }
};

inline void stream_fence() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

template <class T>
inline Mask<T> operator&(Mask<T> a, Mask<T> b) {
  return {a.reg & b.reg};
}

template <class T>
inline Mask<T> operator|(Mask<T> a, Mask<T> b) {
  return {a.reg | b.reg};
}

template <class T>
inline Mask<T> operator~(Mask<T> a) {
  return {~a.reg};
}

inline uint32_t bits(Mask<float> m) {
  return static_cast<uint32_t>((m.reg[0] & 1) | (m.reg[1] & 2) | (m.reg[2] & 4) | (m.reg[3] & 8));
}

inline uint32_t bits(Mask<double> m) {
  return static_cast<uint32_t>((m.reg[0] & 1) | (m.reg[1] & 2));
}

inline Vec<int32_t> as_int(Vec<float> a) {
  return {reinterpret_cast<Int4>(a.reg)};
}

inline Vec<float> as_float(Vec<int32_t> a) {
  return {reinterpret_cast<Float4>(a.reg)};
}

inline Vec<float> select(Mask<float> m, Vec<float> a, Vec<float> b) {
  return as_float({(m.reg & as_int(a).reg) | (~m.reg & as_int(b).reg)});
}

inline Vec<int32_t> select(Mask<float> m, Vec<int32_t> a, Vec<int32_t> b) {
  return {(m.reg & a.reg) | (~m.reg & b.reg)};
}

inline Vec<double> select(Mask<double> m, Vec<double> a, Vec<double> b) {
  return {reinterpret_cast<Double2>((m.reg & reinterpret_cast<Long2>(a.reg)) |
                                    (~m.reg & reinterpret_cast<Long2>(b.reg)))};
}

template <class T>
inline Vec<T> operator+(Vec<T> a, Vec<T> b) {
  return {a.reg + b.reg};
}

template <class T>
inline Vec<T> operator-(Vec<T> a, Vec<T> b) {
  return {a.reg - b.reg};
}

template <class T>
inline Vec<T> operator*(Vec<T> a, Vec<T> b) {
  return {a.reg * b.reg};
}

template <class T>
inline Vec<T> operator/(Vec<T> a, Vec<T> b) {
  return {a.reg / b.reg};
}

template <class T>
inline Vec<T> operator-(Vec<T> a) {
  return {-a.reg};
}

template <class T>
inline Mask<T> operator<(Vec<T> a, Vec<T> b) {
  return {a.reg < b.reg};
}

template <class T>
inline Mask<T> operator<=(Vec<T> a, Vec<T> b) {
  return {a.reg <= b.reg};
}

template <class T>
inline Mask<T> operator==(Vec<T> a, Vec<T> b) {
  return {a.reg == b.reg};
}

template <class T>
inline Mask<T> operator!=(Vec<T> a, Vec<T> b) {
  return {a.reg != b.reg};
}

inline Mask<float> operator==(Vec<int32_t> a, Vec<int32_t> b) {
  return {a.reg == b.reg};
}

inline Mask<float> operator<(Vec<int32_t> a, Vec<int32_t> b) {
  return {a.reg < b.reg};
}

inline Vec<int32_t> operator&(Vec<int32_t> a, Vec<int32_t> b) {
  return {a.reg & b.reg};
}

inline Vec<int32_t> operator|(Vec<int32_t> a, Vec<int32_t> b) {
  return {a.reg | b.reg};
}

inline Vec<int32_t> operator^(Vec<int32_t> a, Vec<int32_t> b) {
  return {a.reg ^ b.reg};
}

// Sums and differences wrap around, as the instructions of the wider sets do.
inline Vec<int32_t> operator+(Vec<int32_t> a, Vec<int32_t> b) {
  return {reinterpret_cast<Int4>(reinterpret_cast<UInt4>(a.reg) + reinterpret_cast<UInt4>(b.reg))};
}

inline Vec<int32_t> operator-(Vec<int32_t> a, Vec<int32_t> b) {
  return {reinterpret_cast<Int4>(reinterpret_cast<UInt4>(a.reg) - reinterpret_cast<UInt4>(b.reg))};
}

template <int kBits>
inline Vec<int32_t> shift_left(Vec<int32_t> a) {
  return {reinterpret_cast<Int4>(reinterpret_cast<UInt4>(a.reg) << kBits)};
}

template <int kBits>
inline Vec<int32_t> shift_right(Vec<int32_t> a) {
  return {a.reg >> kBits};
}

template <int kBits>
inline Vec<int32_t> shift_right_logical(Vec<int32_t> a) {
  return {reinterpret_cast<Int4>(reinterpret_cast<UInt4>(a.reg) >> kBits)};
}

template <class T>
inline Vec<T> fma(Vec<T> a, Vec<T> b, Vec<T> c) {
  return {a.reg * b.reg + c.reg};
}

template <class T>
inline Vec<T> fnma(Vec<T> a, Vec<T> b, Vec<T> c) {
  return {c.reg - a.reg * b.reg};
}

#if defined(__SSE2__)
inline Vec<float> sqrt(Vec<float> a) {
  return {_mm_sqrt_ps(a.reg)};
}

inline Vec<double> sqrt(Vec<double> a) {
  return {_mm_sqrt_pd(a.reg)};
}

inline Vec<float> min(Vec<float> a, Vec<float> b) {
  return {_mm_min_ps(a.reg, b.reg)};
}

inline Vec<double> min(Vec<double> a, Vec<double> b) {
  return {_mm_min_pd(a.reg, b.reg)};
}

inline Vec<float> max(Vec<float> a, Vec<float> b) {
  return {_mm_max_ps(a.reg, b.reg)};
}

inline Vec<double> max(Vec<double> a, Vec<double> b) {
  return {_mm_max_pd(a.reg, b.reg)};
}

inline Vec<int32_t> to_int(Vec<float> a) {
  return {reinterpret_cast<Int4>(_mm_cvtps_epi32(a.reg))};
}
#else
template <class T>
inline Vec<T> sqrt(Vec<T> a) {
  for (int64_t i = 0; i < Vec<T>::kLanes; ++i)
    a.reg[i] = std::sqrt(a.reg[i]);
  return a;
}

template <class T>
inline Vec<T> min(Vec<T> a, Vec<T> b) {
  return select(a < b, a, b);
}

template <class T>
inline Vec<T> max(Vec<T> a, Vec<T> b) {
  return select(b < a, a, b);
}

inline Vec<int32_t> to_int(Vec<float> a) {
  Vec<int32_t> n;
  for (int64_t i = 0; i < Vec<float>::kLanes; ++i)
    n.reg[i] = static_cast<int32_t>(std::lrint(a.reg[i]));
  return n;
}
#endif

inline Vec<float> to_float(Vec<int32_t> a) {
  return {__builtin_convertvector(a.reg, Float4)};
}

template <class T>
inline Vec<T> abs(Vec<T> a) {
  using Bits = decltype(Mask<T>::reg);
  return {reinterpret_cast<decltype(a.reg)>(reinterpret_cast<Bits>(a.reg) &
                                            ~reinterpret_cast<Bits>(Vec<T>::fill(T(-0.0)).reg))};
}

template <class T>
inline Vec<T> copysign(Vec<T> magnitude, Vec<T> sign) {
  using Bits = decltype(Mask<T>::reg);
  const Bits sign_bit = reinterpret_cast<Bits>(Vec<T>::fill(T(-0.0)).reg);
  return {reinterpret_cast<decltype(sign.reg)>((reinterpret_cast<Bits>(magnitude.reg) & ~sign_bit) |
                                               (reinterpret_cast<Bits>(sign.reg) & sign_bit))};
}

// Adding 2^23 (2^52) to a magnitude below it leaves no bits for a fraction.
template <class T>
inline Vec<T> round_even(Vec<T> a) {
  const Vec<T> big = Vec<T>::fill(sizeof(T) == 4 ? T(8388608.0) : T(4503599627370496.0));
  const Vec<T> magnitude = abs(a);
  return select(magnitude < big, copysign((magnitude + big) - big, a), a);
}

template <class T>
inline Vec<T> floor(Vec<T> a) {
  const Vec<T> r = round_even(a);
  return copysign(select(a < r, r - Vec<T>::fill(1), r), a);
}

template <class T>
inline Vec<T> ceil(Vec<T> a) {
  const Vec<T> r = round_even(a);
  return copysign(select(r < a, r + Vec<T>::fill(1), r), a);
}

template <class T>
inline Vec<T> trunc(Vec<T> a) {
  return copysign(floor(abs(a)), a);
}

inline float sum(Vec<float> a) {
  return (a.reg[0] + a.reg[2]) + (a.reg[1] + a.reg[3]);
}

inline double sum(Vec<double> a) {
  return a.reg[0] + a.reg[1];
}

inline Vec<double> widen_low(Vec<float> a) {
  return {Double2{a.reg[0], a.reg[1]}};
}

inline Vec<double> widen_high(Vec<float> a) {
  return {Double2{a.reg[2], a.reg[3]}};
}

inline Vec<float> narrow(Vec<double> low, Vec<double> high) {
  return {Float4{static_cast<float>(low.reg[0]), static_cast<float>(low.reg[1]),
                 static_cast<float>(high.reg[0]), static_cast<float>(high.reg[1])}};
}

inline Vec<int32_t> load_u16(const uint16_t* p) {
  return {Int4{p[0], p[1], p[2], p[3]}};
}

// The low halves of the lanes; the high halves are zero.
inline void store_u16(uint16_t* p, Vec<int32_t> a) {
  for (int64_t i = 0; i < 4; ++i)
    p[i] = static_cast<uint16_t>(a.reg[i]);
}

// f16 in integer arithmetic: a normal half gets its exponent rebased; a subnormal one is an integer
// times 2^-24, exact in float.
inline Vec<float> load_f16(const uint16_t* p) {
  const Vec<int32_t> h = load_u16(p);
  const Vec<int32_t> magnitude = h & Vec<int32_t>::fill(0x7FFF);
  const Vec<int32_t> shifted = shift_left<13>(magnitude);
  const Vec<int32_t> normal = shifted + Vec<int32_t>::fill((127 - 15) << 23);
  const Vec<int32_t> special = shifted | Vec<int32_t>::fill(0x7F800000);
  const Vec<float> subnormal = to_float(magnitude) * Vec<float>::fill(0x1p-24F);
  Vec<int32_t> r = select(magnitude < Vec<int32_t>::fill(0x0400), as_int(subnormal), normal);
  r = select(magnitude < Vec<int32_t>::fill(0x7C00), r, special);
  const Vec<int32_t> quiet = select(Vec<int32_t>::fill(0x7C00) < magnitude,
                                    Vec<int32_t>::fill(0x00400000), Vec<int32_t>::fill(0));
  return as_float(r | quiet | shift_left<16>(h & Vec<int32_t>::fill(0x8000)));
}

// Rounds to nearest even. Adding 0.5 puts a result below 2^-14 on the grid of subnormal halves,
// 2^-24.
inline void store_f16(uint16_t* p, Vec<float> a) {
  using Ints = Vec<int32_t>;
  const Ints magnitude = as_int(abs(a));
  const Ints odd = shift_right<13>(magnitude) & Ints::fill(1);
  const Ints normal =
      shift_right<13>(magnitude - Ints::fill((127 - 15) << 23) + Ints::fill(0x0FFF) + odd);
  const Ints subnormal =
      as_int(as_float(magnitude) + Vec<float>::fill(0.5F)) - as_int(Vec<float>::fill(0.5F));
  Ints r = select(magnitude < Ints::fill((127 - 14) << 23), subnormal, normal);
  r = select(magnitude < Ints::fill((127 + 16) << 23), r, Ints::fill(0x7C00));
  const Ints payload = (shift_right<13>(magnitude) & Ints::fill(0x03FF)) | Ints::fill(0x7E00);
  r = select(Ints::fill(0x7F800000) < magnitude, payload, r);
  store_u16(p, r | (shift_right_logical<16>(as_int(a)) & Ints::fill(0x8000)));
}

#include "ops/kernel/isa_end.h"

#endif
