// Vec and Mask of ops/kernel/vector.h for avx512 f, bw, dq, vl: 64-byte vectors and mask registers.
#pragma once

#include <cstdint>

#if defined(FLOW_ISA) && FLOW_ISA == 2

#include <immintrin.h>

#include "ops/kernel/isa_begin.h"

template <class T>
struct Vec;
template <class T>
struct Mask;

template <>
struct Mask<float> {
  __mmask16 reg;

  static Mask first(int64_t n) {
    return {static_cast<__mmask16>(n >= 16 ? 0xFFFFU : (1U << static_cast<uint32_t>(n)) - 1U)};
  }
};

template <>
struct Mask<double> {
  __mmask8 reg;

  static Mask first(int64_t n) {
    return {static_cast<__mmask8>(n >= 8 ? 0xFFU : (1U << static_cast<uint32_t>(n)) - 1U)};
  }
};

template <>
struct Vec<int32_t> {
  static constexpr int64_t kLanes = 16;
  __m512i reg;

  static Vec fill(int32_t x) { return {_mm512_set1_epi32(x)}; }

  static Vec load(const int32_t* p) { return {_mm512_loadu_si512(p)}; }

  void store(int32_t* p) const { _mm512_storeu_si512(p, reg); }
};

template <>
struct Vec<float> {
  static constexpr int64_t kLanes = 16;
  __m512 reg;

  static Vec fill(float x) { return {_mm512_set1_ps(x)}; }

  static Vec zero() { return {_mm512_setzero_ps()}; }

  static Vec load(const float* p) { return {_mm512_loadu_ps(p)}; }

  static Vec load_n(const float* p, int64_t n, float rest = 0) {
    return {_mm512_mask_loadu_ps(_mm512_set1_ps(rest), Mask<float>::first(n).reg, p)};
  }

  void store(float* p) const { _mm512_storeu_ps(p, reg); }

  void store_n(float* p, int64_t n) const {
    _mm512_mask_storeu_ps(p, Mask<float>::first(n).reg, reg);
  }

  void stream(float* p) const { _mm512_stream_ps(p, reg); }
};

template <>
struct Vec<double> {
  static constexpr int64_t kLanes = 8;
  __m512d reg;

  static Vec fill(double x) { return {_mm512_set1_pd(x)}; }

  static Vec zero() { return {_mm512_setzero_pd()}; }

  static Vec load(const double* p) { return {_mm512_loadu_pd(p)}; }

  static Vec load_n(const double* p, int64_t n, double rest = 0) {
    return {_mm512_mask_loadu_pd(_mm512_set1_pd(rest), Mask<double>::first(n).reg, p)};
  }

  void store(double* p) const { _mm512_storeu_pd(p, reg); }

  void store_n(double* p, int64_t n) const {
    _mm512_mask_storeu_pd(p, Mask<double>::first(n).reg, reg);
  }

  void stream(double* p) const { _mm512_stream_pd(p, reg); }
};

inline void stream_fence() {
  _mm_sfence();
}

template <class T>
inline Mask<T> operator&(Mask<T> a, Mask<T> b) {
  return {static_cast<decltype(a.reg)>(a.reg & b.reg)};
}

template <class T>
inline Mask<T> operator|(Mask<T> a, Mask<T> b) {
  return {static_cast<decltype(a.reg)>(a.reg | b.reg)};
}

template <class T>
inline Mask<T> operator~(Mask<T> a) {
  return {static_cast<decltype(a.reg)>(~static_cast<uint32_t>(a.reg))};
}

inline uint32_t bits(Mask<float> m) {
  return m.reg;
}

inline uint32_t bits(Mask<double> m) {
  return m.reg;
}

inline Vec<int32_t> as_int(Vec<float> a) {
  return {_mm512_castps_si512(a.reg)};
}

inline Vec<float> as_float(Vec<int32_t> a) {
  return {_mm512_castsi512_ps(a.reg)};
}

inline Vec<float> select(Mask<float> m, Vec<float> a, Vec<float> b) {
  return {_mm512_mask_blend_ps(m.reg, b.reg, a.reg)};
}

inline Vec<int32_t> select(Mask<float> m, Vec<int32_t> a, Vec<int32_t> b) {
  return {_mm512_mask_blend_epi32(m.reg, b.reg, a.reg)};
}

inline Vec<double> select(Mask<double> m, Vec<double> a, Vec<double> b) {
  return {_mm512_mask_blend_pd(m.reg, b.reg, a.reg)};
}

inline Vec<float> operator+(Vec<float> a, Vec<float> b) {
  return {_mm512_add_ps(a.reg, b.reg)};
}

inline Vec<float> operator-(Vec<float> a, Vec<float> b) {
  return {_mm512_sub_ps(a.reg, b.reg)};
}

inline Vec<float> operator*(Vec<float> a, Vec<float> b) {
  return {_mm512_mul_ps(a.reg, b.reg)};
}

inline Vec<float> operator/(Vec<float> a, Vec<float> b) {
  return {_mm512_div_ps(a.reg, b.reg)};
}

inline Vec<float> operator-(Vec<float> a) {
  return {_mm512_xor_ps(a.reg, _mm512_set1_ps(-0.0F))};
}

inline Vec<double> operator+(Vec<double> a, Vec<double> b) {
  return {_mm512_add_pd(a.reg, b.reg)};
}

inline Vec<double> operator-(Vec<double> a, Vec<double> b) {
  return {_mm512_sub_pd(a.reg, b.reg)};
}

inline Vec<double> operator*(Vec<double> a, Vec<double> b) {
  return {_mm512_mul_pd(a.reg, b.reg)};
}

inline Vec<double> operator/(Vec<double> a, Vec<double> b) {
  return {_mm512_div_pd(a.reg, b.reg)};
}

inline Vec<double> operator-(Vec<double> a) {
  return {_mm512_xor_pd(a.reg, _mm512_set1_pd(-0.0))};
}

inline Vec<int32_t> operator+(Vec<int32_t> a, Vec<int32_t> b) {
  return {_mm512_add_epi32(a.reg, b.reg)};
}

inline Vec<int32_t> operator-(Vec<int32_t> a, Vec<int32_t> b) {
  return {_mm512_sub_epi32(a.reg, b.reg)};
}

inline Mask<float> operator<(Vec<float> a, Vec<float> b) {
  return {_mm512_cmp_ps_mask(a.reg, b.reg, _CMP_LT_OQ)};
}

inline Mask<float> operator<=(Vec<float> a, Vec<float> b) {
  return {_mm512_cmp_ps_mask(a.reg, b.reg, _CMP_LE_OQ)};
}

inline Mask<float> operator==(Vec<float> a, Vec<float> b) {
  return {_mm512_cmp_ps_mask(a.reg, b.reg, _CMP_EQ_OQ)};
}

inline Mask<float> operator!=(Vec<float> a, Vec<float> b) {
  return {_mm512_cmp_ps_mask(a.reg, b.reg, _CMP_NEQ_UQ)};
}

inline Mask<double> operator<(Vec<double> a, Vec<double> b) {
  return {_mm512_cmp_pd_mask(a.reg, b.reg, _CMP_LT_OQ)};
}

inline Mask<double> operator<=(Vec<double> a, Vec<double> b) {
  return {_mm512_cmp_pd_mask(a.reg, b.reg, _CMP_LE_OQ)};
}

inline Mask<double> operator==(Vec<double> a, Vec<double> b) {
  return {_mm512_cmp_pd_mask(a.reg, b.reg, _CMP_EQ_OQ)};
}

inline Mask<double> operator!=(Vec<double> a, Vec<double> b) {
  return {_mm512_cmp_pd_mask(a.reg, b.reg, _CMP_NEQ_UQ)};
}

inline Mask<float> operator==(Vec<int32_t> a, Vec<int32_t> b) {
  return {_mm512_cmpeq_epi32_mask(a.reg, b.reg)};
}

inline Mask<float> operator<(Vec<int32_t> a, Vec<int32_t> b) {
  return {_mm512_cmplt_epi32_mask(a.reg, b.reg)};
}

inline Vec<int32_t> operator&(Vec<int32_t> a, Vec<int32_t> b) {
  return {_mm512_and_si512(a.reg, b.reg)};
}

inline Vec<int32_t> operator|(Vec<int32_t> a, Vec<int32_t> b) {
  return {_mm512_or_si512(a.reg, b.reg)};
}

inline Vec<int32_t> operator^(Vec<int32_t> a, Vec<int32_t> b) {
  return {_mm512_xor_si512(a.reg, b.reg)};
}

template <int kBits>
inline Vec<int32_t> shift_left(Vec<int32_t> a) {
  return {_mm512_slli_epi32(a.reg, kBits)};
}

template <int kBits>
inline Vec<int32_t> shift_right(Vec<int32_t> a) {
  return {_mm512_srai_epi32(a.reg, kBits)};
}

template <int kBits>
inline Vec<int32_t> shift_right_logical(Vec<int32_t> a) {
  return {_mm512_srli_epi32(a.reg, kBits)};
}

inline Vec<float> fma(Vec<float> a, Vec<float> b, Vec<float> c) {
  return {_mm512_fmadd_ps(a.reg, b.reg, c.reg)};
}

inline Vec<double> fma(Vec<double> a, Vec<double> b, Vec<double> c) {
  return {_mm512_fmadd_pd(a.reg, b.reg, c.reg)};
}

inline Vec<float> fnma(Vec<float> a, Vec<float> b, Vec<float> c) {
  return {_mm512_fnmadd_ps(a.reg, b.reg, c.reg)};
}

inline Vec<double> fnma(Vec<double> a, Vec<double> b, Vec<double> c) {
  return {_mm512_fnmadd_pd(a.reg, b.reg, c.reg)};
}

inline Vec<float> sqrt(Vec<float> a) {
  return {_mm512_sqrt_ps(a.reg)};
}

inline Vec<double> sqrt(Vec<double> a) {
  return {_mm512_sqrt_pd(a.reg)};
}

inline Vec<float> min(Vec<float> a, Vec<float> b) {
  return {_mm512_min_ps(a.reg, b.reg)};
}

inline Vec<double> min(Vec<double> a, Vec<double> b) {
  return {_mm512_min_pd(a.reg, b.reg)};
}

inline Vec<float> max(Vec<float> a, Vec<float> b) {
  return {_mm512_max_ps(a.reg, b.reg)};
}

inline Vec<double> max(Vec<double> a, Vec<double> b) {
  return {_mm512_max_pd(a.reg, b.reg)};
}

inline Vec<float> abs(Vec<float> a) {
  return {_mm512_andnot_ps(_mm512_set1_ps(-0.0F), a.reg)};
}

inline Vec<double> abs(Vec<double> a) {
  return {_mm512_andnot_pd(_mm512_set1_pd(-0.0), a.reg)};
}

// Table 0xCA selects by the first operand: its ones take the second's bit, its zeros the third's.
inline Vec<float> copysign(Vec<float> magnitude, Vec<float> sign) {
  const __m512i sign_bit = _mm512_set1_epi32(INT32_MIN);
  return {_mm512_castsi512_ps(_mm512_ternarylogic_epi32(sign_bit, _mm512_castps_si512(sign.reg),
                                                        _mm512_castps_si512(magnitude.reg), 0xCA))};
}

inline Vec<double> copysign(Vec<double> magnitude, Vec<double> sign) {
  const __m512i sign_bit = _mm512_set1_epi64(INT64_MIN);
  return {_mm512_castsi512_pd(_mm512_ternarylogic_epi64(sign_bit, _mm512_castpd_si512(sign.reg),
                                                        _mm512_castpd_si512(magnitude.reg), 0xCA))};
}

inline Vec<float> round_even(Vec<float> a) {
  return {_mm512_roundscale_ps(a.reg, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}

inline Vec<double> round_even(Vec<double> a) {
  return {_mm512_roundscale_pd(a.reg, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}

inline Vec<float> floor(Vec<float> a) {
  return {_mm512_roundscale_ps(a.reg, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)};
}

inline Vec<double> floor(Vec<double> a) {
  return {_mm512_roundscale_pd(a.reg, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)};
}

inline Vec<float> ceil(Vec<float> a) {
  return {_mm512_roundscale_ps(a.reg, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC)};
}

inline Vec<double> ceil(Vec<double> a) {
  return {_mm512_roundscale_pd(a.reg, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC)};
}

inline Vec<float> trunc(Vec<float> a) {
  return {_mm512_roundscale_ps(a.reg, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)};
}

inline Vec<double> trunc(Vec<double> a) {
  return {_mm512_roundscale_pd(a.reg, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)};
}

inline Vec<int32_t> to_int(Vec<float> a) {
  return {_mm512_cvtps_epi32(a.reg)};
}

inline Vec<float> to_float(Vec<int32_t> a) {
  return {_mm512_cvtepi32_ps(a.reg)};
}

inline float sum(Vec<float> a) {
  const __m256 eight =
      _mm256_add_ps(_mm512_castps512_ps256(a.reg), _mm512_extractf32x8_ps(a.reg, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

inline double sum(Vec<double> a) {
  const __m256d four =
      _mm256_add_pd(_mm512_castpd512_pd256(a.reg), _mm512_extractf64x4_pd(a.reg, 1));
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
  return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

inline Vec<double> widen_low(Vec<float> a) {
  return {_mm512_cvtps_pd(_mm512_castps512_ps256(a.reg))};
}

inline Vec<double> widen_high(Vec<float> a) {
  return {_mm512_cvtps_pd(_mm512_extractf32x8_ps(a.reg, 1))};
}

inline Vec<float> narrow(Vec<double> low, Vec<double> high) {
  return {_mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(low.reg)),
                             _mm512_cvtpd_ps(high.reg), 1)};
}

inline Vec<int32_t> load_u16(const uint16_t* p) {
  return {_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}

inline void store_u16(uint16_t* p, Vec<int32_t> a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(a.reg));
}

inline Vec<float> load_f16(const uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}

inline void store_f16(uint16_t* p, Vec<float> a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtps_ph(a.reg, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

#include "ops/kernel/isa_end.h"

#endif
