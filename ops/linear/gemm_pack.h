// Packing for the blocked kernel of ops/linear/gemm_cpu.cpp: copies a block of a matrix into tiles
// that the register kernel reads from front to back.
#pragma once

#include <cstdint>

#include "ops/kernel/vector.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "ops/kernel/isa_begin.h"

template <class T>
T smaller(T a, T b) {
  return a < b ? a : b;
}

// c[0..count) = alpha * sum + beta * c, where count may be less than a register.
template <class T>
void store_scaled(T* c, Vec<T> sum, int64_t count, T alpha, T beta) {
  if (alpha != T{1}) sum = sum * Vec<T>::fill(alpha);
  if (count >= Vec<T>::kLanes) {
    if (beta != T{0}) sum = fma(Vec<T>::load(c), Vec<T>::fill(beta), sum);
    sum.store(c);
  } else if (count > 0) {
    if (beta != T{0}) sum = fma(Vec<T>::load_n(c, count), Vec<T>::fill(beta), sum);
    sum.store_n(c, count);
  }
}

// columns[q] = element q of Vec<float>::kLanes rows, `stride` apart.
inline void load_columns(const float* rows, int64_t stride, Vec<float> (&columns)[4]) {
#if FLOW_ISA == 2
  __m512 r[4];
#pragma GCC unroll 4
  for (int64_t i = 0; i < 4; ++i) {
    const float* row = rows + i * stride;
    r[i] = _mm512_castps128_ps512(_mm_loadu_ps(row));
    r[i] = _mm512_insertf32x4(r[i], _mm_loadu_ps(row + 4 * stride), 1);
    r[i] = _mm512_insertf32x4(r[i], _mm_loadu_ps(row + 8 * stride), 2);
    r[i] = _mm512_insertf32x4(r[i], _mm_loadu_ps(row + 12 * stride), 3);
  }
  const __m512d low01 = _mm512_castps_pd(_mm512_unpacklo_ps(r[0], r[1]));
  const __m512d low23 = _mm512_castps_pd(_mm512_unpacklo_ps(r[2], r[3]));
  const __m512d high01 = _mm512_castps_pd(_mm512_unpackhi_ps(r[0], r[1]));
  const __m512d high23 = _mm512_castps_pd(_mm512_unpackhi_ps(r[2], r[3]));
  columns[0].reg = _mm512_castpd_ps(_mm512_unpacklo_pd(low01, low23));
  columns[1].reg = _mm512_castpd_ps(_mm512_unpackhi_pd(low01, low23));
  columns[2].reg = _mm512_castpd_ps(_mm512_unpacklo_pd(high01, high23));
  columns[3].reg = _mm512_castpd_ps(_mm512_unpackhi_pd(high01, high23));
#elif FLOW_ISA == 1
  __m256 r[4];
#pragma GCC unroll 4
  for (int64_t i = 0; i < 4; ++i) {
    const float* row = rows + i * stride;
    r[i] = _mm256_castps128_ps256(_mm_loadu_ps(row));
    r[i] = _mm256_insertf128_ps(r[i], _mm_loadu_ps(row + 4 * stride), 1);
  }
  const __m256d low01 = _mm256_castps_pd(_mm256_unpacklo_ps(r[0], r[1]));
  const __m256d low23 = _mm256_castps_pd(_mm256_unpacklo_ps(r[2], r[3]));
  const __m256d high01 = _mm256_castps_pd(_mm256_unpackhi_ps(r[0], r[1]));
  const __m256d high23 = _mm256_castps_pd(_mm256_unpackhi_ps(r[2], r[3]));
  columns[0].reg = _mm256_castpd_ps(_mm256_unpacklo_pd(low01, low23));
  columns[1].reg = _mm256_castpd_ps(_mm256_unpackhi_pd(low01, low23));
  columns[2].reg = _mm256_castpd_ps(_mm256_unpacklo_pd(high01, high23));
  columns[3].reg = _mm256_castpd_ps(_mm256_unpackhi_pd(high01, high23));
#else
  for (int64_t q = 0; q < 4; ++q) {
    columns[q].reg = Float4{rows[q], rows[stride + q], rows[2 * stride + q], rows[3 * stride + q]};
  }
#endif
}

#if FLOW_ISA == 2

// The same as load_columns, for 16 columns. Each cache line is read in one go: rows that are a
// multiple of 4 KiB apart share a set of the first-level cache, which holds twelve lines.
inline void load_square(const float* rows, int64_t stride, Vec<float> (&columns)[16]) {
  __m512 r[16];
  __m512 s[16];
#pragma GCC unroll 16
  for (int64_t i = 0; i < 16; ++i)
    r[i] = _mm512_loadu_ps(rows + i * stride);
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    s[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
    s[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
  }
  // r[i + q], i a multiple of 4: part b holds column 4 b + q of rows i to i + 3.
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    const int low = i % 4 == 0 ? i : i - 1;
    const __m512d a = _mm512_castps_pd(s[low]);
    const __m512d b = _mm512_castps_pd(s[low + 2]);
    r[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
    r[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
  }
#pragma GCC unroll 4
  for (int q = 0; q < 4; ++q) {
    const __m512 even_low = _mm512_shuffle_f32x4(r[q], r[4 + q], 0x88);
    const __m512 even_high = _mm512_shuffle_f32x4(r[8 + q], r[12 + q], 0x88);
    const __m512 odd_low = _mm512_shuffle_f32x4(r[q], r[4 + q], 0xDD);
    const __m512 odd_high = _mm512_shuffle_f32x4(r[8 + q], r[12 + q], 0xDD);
    columns[q].reg = _mm512_shuffle_f32x4(even_low, even_high, 0x88);
    columns[4 + q].reg = _mm512_shuffle_f32x4(odd_low, odd_high, 0x88);
    columns[8 + q].reg = _mm512_shuffle_f32x4(even_low, even_high, 0xDD);
    columns[12 + q].reg = _mm512_shuffle_f32x4(odd_low, odd_high, 0xDD);
  }
}

#endif

// Writes element (i, p) of the rows to packed[p * kWidth + i]. Only `rows` of the kWidth rows
// exist; the others become zero.
template <int kWidth, class T>
void pack_rows(const T* source, int64_t along, int64_t deep, int64_t rows, int64_t depth,
               T* packed) {
  for (int64_t p = 0; p < depth; ++p) {
    for (int64_t i = 0; i < kWidth; ++i) {
      packed[p * kWidth + i] = i < rows ? source[i * along + p * deep] : T{0};
    }
  }
}

// The same as pack_rows, for contiguous rows. Each row must be readable up to the next multiple of
// the vector's width. A store may run over into the next p, which is stored after it, but never
// past the tile.
template <int kWidth>
void transpose_rows(const float* source, int64_t along, int64_t depth, float* packed) {
  constexpr int64_t kLanes = Vec<float>::kLanes;
  constexpr int64_t kOverrun = kWidth % kLanes == 0 ? 0 : 1;
  int64_t p = 0;
#if FLOW_ISA == 2
  for (; p + 16 + kOverrun <= depth; p += 16) {
#pragma GCC unroll 2
    for (int64_t i = 0; i < kWidth; i += kLanes) {
      Vec<float> columns[16];
      load_square(source + i * along + p, along, columns);
#pragma GCC unroll 16
      for (int64_t q = 0; q < 16; ++q)
        columns[q].store(packed + (p + q) * kWidth + i);
    }
  }
#endif
  for (; p + 4 + kOverrun <= depth; p += 4) {
#pragma GCC unroll 4
    for (int64_t i = 0; i < kWidth; i += kLanes) {
      Vec<float> columns[4];
      load_columns(source + i * along + p, along, columns);
#pragma GCC unroll 4
      for (int64_t q = 0; q < 4; ++q)
        columns[q].store(packed + (p + q) * kWidth + i);
    }
  }
  pack_rows<kWidth>(source + p, along, 1, kWidth, depth - p, packed + p * kWidth);
}

// One row of the tiles from `start` to `end`. If kMayOverrun, the elements after a tile's part of
// this row are stored later, so whole vectors are copied where enough of the `count` elements
// exist.
template <int kWidth, bool kMayOverrun, class T>
void copy_tiles(const T* row, int64_t start, int64_t end, int64_t count, int64_t depth, T* packed) {
  constexpr int64_t kLanes = Vec<T>::kLanes;
  constexpr int64_t kReadable = (kWidth + kLanes - 1) / kLanes * kLanes;
  int64_t i = start;
  if constexpr (kMayOverrun || kReadable == kWidth) {
    for (const int64_t last = smaller(end - kWidth, count - kReadable); i <= last; i += kWidth) {
#pragma GCC unroll 4
      for (int64_t v = 0; v < kReadable; v += kLanes)
        Vec<T>::load(row + i + v).store(packed + i * depth + v);
    }
  }
  for (; i < end; i += kWidth)
    __builtin_memcpy(packed + i * depth, row + i, kWidth * sizeof(T));
}

// packed: tiles of kWidth x depth with element (i, p) of a tile at p * kWidth + i; the last tile is
// filled up with zeros. Used for both operands: `along` is the stride over i < count, `deep` the
// stride over p, and one of them is 1.
template <int kWidth, class T>
void pack(const T* source, int64_t along, int64_t deep, int64_t count, int64_t depth, T* packed) {
  int64_t start = 0;
  if (along == 1) {
    // Packs several tiles at once. Rows that are a power of two apart share few sets of the caches,
    // so a line that was read for one tile would be evicted before the next tile reads the rest of
    // it.
    constexpr int64_t kTogether = int64_t{8} * kWidth;
    const int64_t full = count / kWidth * kWidth;
    for (; start < full; start += smaller(kTogether, full - start)) {
      const int64_t end = smaller(start + kTogether, full);
      for (int64_t p = 0; p + 1 < depth; ++p)
        copy_tiles<kWidth, true>(source + p * deep, start, end, count, depth, packed + p * kWidth);
      if (depth > 0) {
        copy_tiles<kWidth, false>(source + (depth - 1) * deep, start, end, count, depth,
                                  packed + (depth - 1) * kWidth);
      }
    }
  } else if constexpr (sizeof(T) == sizeof(float)) {
    constexpr int64_t kLanes = Vec<float>::kLanes;
    constexpr int64_t kReadable = (kWidth + kLanes - 1) / kLanes * kLanes;
    for (; start + kReadable <= count; start += kWidth) {
      transpose_rows<kWidth>(source + start * along, along, depth, packed + start * depth);
    }
  }
  for (; start < count; start += kWidth) {
    pack_rows<kWidth>(source + start * along, along, deep, smaller<int64_t>(kWidth, count - start),
                      depth, packed + start * depth);
  }
}

#include "ops/kernel/isa_end.h"
