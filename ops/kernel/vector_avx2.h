// Vec and Mask of ops/kernel/vector.h for avx2, fma and f16c: 32-byte vectors.
#pragma once

#include <cstdint>

#if defined(FLOW_ISA) && FLOW_ISA == 1

#include <immintrin.h>

#include "ops/kernel/isa_begin.h"

template <class T>
struct Vec;
template <class T>
struct Mask;

// A lane of a mask is all ones or all zeros.
template <>
struct Mask<float> {
  __m256i reg;

  static Mask first(int64_t n) {
    return {_mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int32_t>(n)),
                               _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))};
  }
};

template <>
struct Mask<double> {
  __m256i reg;

  static Mask first(int64_t n) {
    return {_mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3))};
  }
};

template <>
struct Vec<int32_t> {
  static constexpr int64_t kLanes = 8;
  __m256i reg;

  static Vec fill(int32_t x) { return {_mm256_set1_epi32(x)}; }

  static Vec load(const int32_t* p) {
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))};
  }

  void store(int32_t* p) const { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), reg); }
};

template <>
struct Vec<float> {
  static constexpr int64_t kLanes = 8;
  __m256 reg;

  static Vec fill(float x) { return {_mm256_set1_ps(x)}; }

  static Vec zero() { return {_mm256_setzero_ps()}; }

  static Vec load(const float* p) { return {_mm256_loadu_ps(p)}; }

  static Vec load_n(const float* p, int64_t n, float rest = 0) {
    const __m256i mask = Mask<float>::first(n).reg;
    const __m256 v = _mm256_maskload_ps(p, mask);
    return {_mm256_blendv_ps(_mm256_set1_ps(rest), v, _mm256_castsi256_ps(mask))};
  }

  void store(float* p) const { _mm256_storeu_ps(p, reg); }

  void store_n(float* p, int64_t n) const {
    _mm256_maskstore_ps(p, Mask<float>::first(n).reg, reg);
  }

  void stream(float* p) const { _mm256_stream_ps(p, reg); }
};

template <>
struct Vec<double> {
  static constexpr int64_t kLanes = 4;
  __m256d reg;

  static Vec fill(double x) { return {_mm256_set1_pd(x)}; }

  static Vec zero() { return {_mm256_setzero_pd()}; }

  static Vec load(const double* p) { return {_mm256_loadu_pd(p)}; }

  static Vec load_n(const double* p, int64_t n, double rest = 0) {
    const __m256i mask = Mask<double>::first(n).reg;
    const __m256d v = _mm256_maskload_pd(p, mask);
    return {_mm256_blendv_pd(_mm256_set1_pd(rest), v, _mm256_castsi256_pd(mask))};
  }

  void store(double* p) const { _mm256_storeu_pd(p, reg); }

  void store_n(double* p, int64_t n) const {
    _mm256_maskstore_pd(p, Mask<double>::first(n).reg, reg);
  }

  void stream(double* p) const { _mm256_stream_pd(p, reg); }
};

inline void stream_fence() {
  _mm_sfence();
}

template <class T>
inline Mask<T> operator&(Mask<T> a, Mask<T> b) {
  return {_mm256_and_si256(a.reg, b.reg)};
}

template <class T>
inline Mask<T> operator|(Mask<T> a, Mask<T> b) {
  return {_mm256_or_si256(a.reg, b.reg)};
}

template <class T>
inline Mask<T> operator~(Mask<T> a) {
  return {_mm256_xor_si256(a.reg, _mm256_set1_epi32(-1))};
}

inline uint32_t bits(Mask<float> m) {
  return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(m.reg)));
}

inline uint32_t bits(Mask<double> m) {
  return static_cast<uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(m.reg)));
}

inline Vec<int32_t> as_int(Vec<float> a) {
  return {_mm256_castps_si256(a.reg)};
}

inline Vec<float> as_float(Vec<int32_t> a) {
  return {_mm256_castsi256_ps(a.reg)};
}

inline Vec<float> select(Mask<float> m, Vec<float> a, Vec<float> b) {
  return {_mm256_blendv_ps(b.reg, a.reg, _mm256_castsi256_ps(m.reg))};
}

inline Vec<int32_t> select(Mask<float> m, Vec<int32_t> a, Vec<int32_t> b) {
  return {_mm256_blendv_epi8(b.reg, a.reg, m.reg)};
}

inline Vec<double> select(Mask<double> m, Vec<double> a, Vec<double> b) {
  return {_mm256_blendv_pd(b.reg, a.reg, _mm256_castsi256_pd(m.reg))};
}

inline Vec<float> operator+(Vec<float> a, Vec<float> b) {
  return {_mm256_add_ps(a.reg, b.reg)};
}

inline Vec<float> operator-(Vec<float> a, Vec<float> b) {
  return {_mm256_sub_ps(a.reg, b.reg)};
}

inline Vec<float> operator*(Vec<float> a, Vec<float> b) {
  return {_mm256_mul_ps(a.reg, b.reg)};
}

inline Vec<float> operator/(Vec<float> a, Vec<float> b) {
  return {_mm256_div_ps(a.reg, b.reg)};
}

inline Vec<float> operator-(Vec<float> a) {
  return {_mm256_xor_ps(a.reg, _mm256_set1_ps(-0.0F))};
}

inline Vec<double> operator+(Vec<double> a, Vec<double> b) {
  return {_mm256_add_pd(a.reg, b.reg)};
}

inline Vec<double> operator-(Vec<double> a, Vec<double> b) {
  return {_mm256_sub_pd(a.reg, b.reg)};
}

inline Vec<double> operator*(Vec<double> a, Vec<double> b) {
  return {_mm256_mul_pd(a.reg, b.reg)};
}

inline Vec<double> operator/(Vec<double> a, Vec<double> b) {
  return {_mm256_div_pd(a.reg, b.reg)};
}

inline Vec<double> operator-(Vec<double> a) {
  return {_mm256_xor_pd(a.reg, _mm256_set1_pd(-0.0))};
}

inline Vec<int32_t> operator+(Vec<int32_t> a, Vec<int32_t> b) {
  return {_mm256_add_epi32(a.reg, b.reg)};
}

inline Vec<int32_t> operator-(Vec<int32_t> a, Vec<int32_t> b) {
  return {_mm256_sub_epi32(a.reg, b.reg)};
}

inline Mask<float> operator<(Vec<float> a, Vec<float> b) {
  return {_mm256_castps_si256(_mm256_cmp_ps(a.reg, b.reg, _CMP_LT_OQ))};
}

inline Mask<float> operator<=(Vec<float> a, Vec<float> b) {
  return {_mm256_castps_si256(_mm256_cmp_ps(a.reg, b.reg, _CMP_LE_OQ))};
}

inline Mask<float> operator==(Vec<float> a, Vec<float> b) {
  return {_mm256_castps_si256(_mm256_cmp_ps(a.reg, b.reg, _CMP_EQ_OQ))};
}

inline Mask<float> operator!=(Vec<float> a, Vec<float> b) {
  return {_mm256_castps_si256(_mm256_cmp_ps(a.reg, b.reg, _CMP_NEQ_UQ))};
}

inline Mask<double> operator<(Vec<double> a, Vec<double> b) {
  return {_mm256_castpd_si256(_mm256_cmp_pd(a.reg, b.reg, _CMP_LT_OQ))};
}

inline Mask<double> operator<=(Vec<double> a, Vec<double> b) {
  return {_mm256_castpd_si256(_mm256_cmp_pd(a.reg, b.reg, _CMP_LE_OQ))};
}

inline Mask<double> operator==(Vec<double> a, Vec<double> b) {
  return {_mm256_castpd_si256(_mm256_cmp_pd(a.reg, b.reg, _CMP_EQ_OQ))};
}

inline Mask<double> operator!=(Vec<double> a, Vec<double> b) {
  return {_mm256_castpd_si256(_mm256_cmp_pd(a.reg, b.reg, _CMP_NEQ_UQ))};
}

inline Mask<float> operator==(Vec<int32_t> a, Vec<int32_t> b) {
  return {_mm256_cmpeq_epi32(a.reg, b.reg)};
}

inline Mask<float> operator<(Vec<int32_t> a, Vec<int32_t> b) {
  return {_mm256_cmpgt_epi32(b.reg, a.reg)};
}

inline Vec<int32_t> operator&(Vec<int32_t> a, Vec<int32_t> b) {
  return {_mm256_and_si256(a.reg, b.reg)};
}

inline Vec<int32_t> operator|(Vec<int32_t> a, Vec<int32_t> b) {
  return {_mm256_or_si256(a.reg, b.reg)};
}

inline Vec<int32_t> operator^(Vec<int32_t> a, Vec<int32_t> b) {
  return {_mm256_xor_si256(a.reg, b.reg)};
}

template <int kBits>
inline Vec<int32_t> shift_left(Vec<int32_t> a) {
  return {_mm256_slli_epi32(a.reg, kBits)};
}

template <int kBits>
inline Vec<int32_t> shift_right(Vec<int32_t> a) {
  return {_mm256_srai_epi32(a.reg, kBits)};
}

template <int kBits>
inline Vec<int32_t> shift_right_logical(Vec<int32_t> a) {
  return {_mm256_srli_epi32(a.reg, kBits)};
}

inline Vec<float> fma(Vec<float> a, Vec<float> b, Vec<float> c) {
  return {_mm256_fmadd_ps(a.reg, b.reg, c.reg)};
}

inline Vec<double> fma(Vec<double> a, Vec<double> b, Vec<double> c) {
  return {_mm256_fmadd_pd(a.reg, b.reg, c.reg)};
}

inline Vec<float> fnma(Vec<float> a, Vec<float> b, Vec<float> c) {
  return {_mm256_fnmadd_ps(a.reg, b.reg, c.reg)};
}

inline Vec<double> fnma(Vec<double> a, Vec<double> b, Vec<double> c) {
  return {_mm256_fnmadd_pd(a.reg, b.reg, c.reg)};
}

inline Vec<float> sqrt(Vec<float> a) {
  return {_mm256_sqrt_ps(a.reg)};
}

inline Vec<double> sqrt(Vec<double> a) {
  return {_mm256_sqrt_pd(a.reg)};
}

inline Vec<float> min(Vec<float> a, Vec<float> b) {
  return {_mm256_min_ps(a.reg, b.reg)};
}

inline Vec<double> min(Vec<double> a, Vec<double> b) {
  return {_mm256_min_pd(a.reg, b.reg)};
}

inline Vec<float> max(Vec<float> a, Vec<float> b) {
  return {_mm256_max_ps(a.reg, b.reg)};
}

inline Vec<double> max(Vec<double> a, Vec<double> b) {
  return {_mm256_max_pd(a.reg, b.reg)};
}

inline Vec<float> abs(Vec<float> a) {
  return {_mm256_andnot_ps(_mm256_set1_ps(-0.0F), a.reg)};
}

inline Vec<double> abs(Vec<double> a) {
  return {_mm256_andnot_pd(_mm256_set1_pd(-0.0), a.reg)};
}

inline Vec<float> copysign(Vec<float> magnitude, Vec<float> sign) {
  const __m256 sign_bit = _mm256_set1_ps(-0.0F);
  return {
      _mm256_or_ps(_mm256_andnot_ps(sign_bit, magnitude.reg), _mm256_and_ps(sign_bit, sign.reg))};
}

inline Vec<double> copysign(Vec<double> magnitude, Vec<double> sign) {
  const __m256d sign_bit = _mm256_set1_pd(-0.0);
  return {
      _mm256_or_pd(_mm256_andnot_pd(sign_bit, magnitude.reg), _mm256_and_pd(sign_bit, sign.reg))};
}

inline Vec<float> round_even(Vec<float> a) {
  return {_mm256_round_ps(a.reg, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}

inline Vec<double> round_even(Vec<double> a) {
  return {_mm256_round_pd(a.reg, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}

inline Vec<float> floor(Vec<float> a) {
  return {_mm256_floor_ps(a.reg)};
}

inline Vec<double> floor(Vec<double> a) {
  return {_mm256_floor_pd(a.reg)};
}

inline Vec<float> ceil(Vec<float> a) {
  return {_mm256_ceil_ps(a.reg)};
}

inline Vec<double> ceil(Vec<double> a) {
  return {_mm256_ceil_pd(a.reg)};
}

inline Vec<float> trunc(Vec<float> a) {
  return {_mm256_round_ps(a.reg, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)};
}

inline Vec<double> trunc(Vec<double> a) {
  return {_mm256_round_pd(a.reg, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)};
}

inline Vec<int32_t> to_int(Vec<float> a) {
  return {_mm256_cvtps_epi32(a.reg)};
}

inline Vec<float> to_float(Vec<int32_t> a) {
  return {_mm256_cvtepi32_ps(a.reg)};
}

inline float sum(Vec<float> a) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(a.reg), _mm256_extractf128_ps(a.reg, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

inline double sum(Vec<double> a) {
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(a.reg), _mm256_extractf128_pd(a.reg, 1));
  return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

inline Vec<double> widen_low(Vec<float> a) {
  return {_mm256_cvtps_pd(_mm256_castps256_ps128(a.reg))};
}

inline Vec<double> widen_high(Vec<float> a) {
  return {_mm256_cvtps_pd(_mm256_extractf128_ps(a.reg, 1))};
}

inline Vec<float> narrow(Vec<double> low, Vec<double> high) {
  return {_mm256_set_m128(_mm256_cvtpd_ps(high.reg), _mm256_cvtpd_ps(low.reg))};
}

inline Vec<int32_t> load_u16(const uint16_t* p) {
  return {_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}

// The low halves of the lanes; the high halves are zero.
inline void store_u16(uint16_t* p, Vec<int32_t> a) {
  const __m256i packed = _mm256_packus_epi32(a.reg, a.reg);
  const __m256i ordered = _mm256_permute4x64_epi64(packed, 0x08);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(ordered));
}

inline Vec<float> load_f16(const uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}

inline void store_f16(uint16_t* p, Vec<float> a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm256_cvtps_ph(a.reg, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

#include "ops/kernel/isa_end.h"

#endif
