#pragma once

// One SIMD register of float or double for the instruction set a kernel file is being compiled for
// (FLOW_ISA: 0 = SSE2, 1 = AVX2 + FMA, 2 = AVX-512). Included inside the per-ISA namespace of
// gemm_cpu.cpp only.

#if FLOW_ISA == 2

struct FloatLane {
  using Element = float;
  using Vector = __m512;
  static constexpr int kWidth = 16;

  static __mmask16 mask(int count) { return static_cast<__mmask16>((1U << count) - 1U); }

  static Vector zero() { return _mm512_setzero_ps(); }

  static Vector broadcast(const float* p) { return _mm512_set1_ps(*p); }

  static Vector load(const float* p) { return _mm512_loadu_ps(p); }

  static Vector load_first(const float* p, int count) {
    return _mm512_maskz_loadu_ps(mask(count), p);
  }

  static void store(float* p, Vector v) { _mm512_storeu_ps(p, v); }

  static void store_first(float* p, Vector v, int count) {
    _mm512_mask_storeu_ps(p, mask(count), v);
  }

  static Vector multiply(Vector a, Vector b) { return _mm512_mul_ps(a, b); }

  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
};

struct DoubleLane {
  using Element = double;
  using Vector = __m512d;
  static constexpr int kWidth = 8;

  static __mmask8 mask(int count) { return static_cast<__mmask8>((1U << count) - 1U); }

  static Vector zero() { return _mm512_setzero_pd(); }

  static Vector broadcast(const double* p) { return _mm512_set1_pd(*p); }

  static Vector load(const double* p) { return _mm512_loadu_pd(p); }

  static Vector load_first(const double* p, int count) {
    return _mm512_maskz_loadu_pd(mask(count), p);
  }

  static void store(double* p, Vector v) { _mm512_storeu_pd(p, v); }

  static void store_first(double* p, Vector v, int count) {
    _mm512_mask_storeu_pd(p, mask(count), v);
  }

  static Vector multiply(Vector a, Vector b) { return _mm512_mul_pd(a, b); }

  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_pd(a, b, c); }
};

#elif FLOW_ISA == 1

struct FloatLane {
  using Element = float;
  using Vector = __m256;
  static constexpr int kWidth = 8;

  // The first `count` lanes set: a window into eight ones followed by eight zeros.
  static __m256i mask(int count) {
    alignas(32) static constexpr int kWindow[16] = {-1, -1, -1, -1, -1, -1, -1, -1,
                                                    0,  0,  0,  0,  0,  0,  0,  0};
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kWindow + 8 - count));
  }

  static Vector zero() { return _mm256_setzero_ps(); }

  static Vector broadcast(const float* p) { return _mm256_broadcast_ss(p); }

  static Vector load(const float* p) { return _mm256_loadu_ps(p); }

  static Vector load_first(const float* p, int count) { return _mm256_maskload_ps(p, mask(count)); }

  static void store(float* p, Vector v) { _mm256_storeu_ps(p, v); }

  static void store_first(float* p, Vector v, int count) { _mm256_maskstore_ps(p, mask(count), v); }

  static Vector multiply(Vector a, Vector b) { return _mm256_mul_ps(a, b); }

  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
};

struct DoubleLane {
  using Element = double;
  using Vector = __m256d;
  static constexpr int kWidth = 4;

  static __m256i mask(int count) {
    alignas(32) static constexpr long long kWindow[8] = {-1, -1, -1, -1, 0, 0, 0, 0};
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kWindow + 4 - count));
  }

  static Vector zero() { return _mm256_setzero_pd(); }

  static Vector broadcast(const double* p) { return _mm256_broadcast_sd(p); }

  static Vector load(const double* p) { return _mm256_loadu_pd(p); }

  static Vector load_first(const double* p, int count) {
    return _mm256_maskload_pd(p, mask(count));
  }

  static void store(double* p, Vector v) { _mm256_storeu_pd(p, v); }

  static void store_first(double* p, Vector v, int count) {
    _mm256_maskstore_pd(p, mask(count), v);
  }

  static Vector multiply(Vector a, Vector b) { return _mm256_mul_pd(a, b); }

  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_pd(a, b, c); }
};

#else

// Baseline: 128-bit vectors by GCC's extension, so that the file also serves targets other than
// x86.
template <class T>
struct BaselineLane {
  using Element = T;
  typedef T Vector __attribute__((vector_size(16)));
  static constexpr int kWidth = 16 / static_cast<int>(sizeof(T));

  static Vector zero() { return Vector{}; }

  static Vector broadcast(const T* p) { return Vector{} + *p; }

  static Vector load(const T* p) {
    Vector v;
    __builtin_memcpy(&v, p, sizeof(v));
    return v;
  }

  static Vector load_first(const T* p, int count) {
    Vector v{};
    for (int i = 0; i < count; ++i)
      v[i] = p[i];
    return v;
  }

  static void store(T* p, Vector v) { __builtin_memcpy(p, &v, sizeof(v)); }

  static void store_first(T* p, Vector v, int count) {
    for (int i = 0; i < count; ++i)
      p[i] = v[i];
  }

  static Vector multiply(Vector a, Vector b) { return a * b; }

  static Vector multiply_add(Vector a, Vector b, Vector c) { return a * b + c; }
};

using FloatLane = BaselineLane<float>;
using DoubleLane = BaselineLane<double>;

#endif
