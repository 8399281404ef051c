// Products of few rows with a matrix B whose rows are contiguous, for ops/linear/gemm_cpu.cpp. Each
// pass adds the products of kDeep rows of B to sums that stay in the first-level cache. B is read
// once, in place and from front to back; packing it would take as long as multiplying it.
#pragma once

#include "ops/kernel/vector.h"
#include "ops/linear/gemm_kernels.h"
#include "ops/linear/gemm_pack.h"

#include "ops/kernel/isa_begin.h"

namespace few_rows {

// More rows multiply each element of B so often that packing it pays.
constexpr int64_t kMaxRows = 32;
// Rows of B in a pass, and vectors of a row at a time: kDeep * kVectors registers hold B. With 16
// registers, six rows of two vectors are faster than eight of one, which take a load of a factor
// for each multiply-add (Zen 3: 1.16 to 1.44 times as fast for 1 to 32 rows).
constexpr int kDeep = FLOW_ISA == 2 ? 8 : 6;
constexpr int kVectors = 2;
// The sums of a panel of columns stay in a first-level cache of 32 KiB.
constexpr int64_t kSumBytes = (FLOW_ISA == 2 ? 12 : 20) * int64_t{1024};

// One pass over one or more vectors of columns: sums[i][j] += sum over q of a[i][q] * b[q][j]. a
// has kDeep factors for each row, of which kRowsOfB count. If kTail, `tail` elements of B exist;
// sums have room for whole vectors.
template <class T, int kRowsOfB, int kWidth, bool kTail, bool kFirst>
void add_columns(int64_t rows, const T* a, const T* b, int64_t b_row, T* sums, int64_t stride,
                 int64_t tail) {
  constexpr int64_t kLanes = Vec<T>::kLanes;
  Vec<T> b_rows[kRowsOfB][kWidth];
#pragma GCC unroll 8
  for (int q = 0; q < kRowsOfB; ++q) {
#pragma GCC unroll 2
    for (int v = 0; v < kWidth; ++v) {
      const T* from = b + q * b_row + v * kLanes;
      b_rows[q][v] = kTail ? Vec<T>::load_n(from, tail) : Vec<T>::load(from);
      // The same columns of the next pass. A prefetch past the end of memory does nothing.
      __builtin_prefetch(from + kDeep * b_row, 0, 3);
    }
  }
  for (int64_t i = 0; i < rows; ++i, a += kDeep, sums += stride) {
    Vec<T> sum[kWidth];
#pragma GCC unroll 2
    for (int v = 0; v < kWidth; ++v)
      sum[v] = kFirst ? Vec<T>::zero() : Vec<T>::load(sums + v * kLanes);
#pragma GCC unroll 8
    for (int q = 0; q < kRowsOfB; ++q) {
      const Vec<T> factor = Vec<T>::fill(a[q]);
#pragma GCC unroll 2
      for (int v = 0; v < kWidth; ++v)
        sum[v] = fma(factor, b_rows[q][v], sum[v]);
    }
#pragma GCC unroll 2
    for (int v = 0; v < kWidth; ++v)
      sum[v].store(sums + v * kLanes);
  }
}

template <class T, int kRowsOfB, bool kFirst>
void add_panel(int64_t rows, const T* a, const T* b, int64_t b_row, T* sums, int64_t stride,
               int64_t columns) {
  constexpr int64_t kLanes = Vec<T>::kLanes;
  constexpr int64_t kWide = kVectors * kLanes;
  int64_t j = 0;
  for (; j + kWide <= columns; j += kWide)
    add_columns<T, kRowsOfB, kVectors, false, kFirst>(rows, a, b + j, b_row, sums + j, stride, 0);
  for (; j < columns; j += kLanes) {
    if (columns - j >= kLanes) {
      add_columns<T, kRowsOfB, 1, false, kFirst>(rows, a, b + j, b_row, sums + j, stride, 0);
    } else {
      add_columns<T, kRowsOfB, 1, true, kFirst>(rows, a, b + j, b_row, sums + j, stride,
                                                columns - j);
    }
  }
}

template <class T, int kRowsOfB>
void add_pass(bool is_first, int64_t rows, const T* a, const T* b, int64_t b_row, T* sums,
              int64_t stride, int64_t columns) {
  if (is_first) {
    add_panel<T, kRowsOfB, true>(rows, a, b, b_row, sums, stride, columns);
  } else {
    add_panel<T, kRowsOfB, false>(rows, a, b, b_row, sums, stride, columns);
  }
}

// The factors of one pass after another, and of a pass kDeep for each row.
template <class T>
void pack_factors(const GemmCall<T>& call, T* packed) {
  for (int64_t p = 0; p < call.k; p += kDeep, packed += call.m * kDeep) {
    const int64_t deep = smaller<int64_t>(kDeep, call.k - p);
    for (int64_t i = 0; i < call.m; ++i) {
      const T* from = call.a + i * call.a_row + p * call.a_col;
      for (int64_t q = 0; q < deep; ++q)
        packed[i * kDeep + q] = from[q * call.a_col];
    }
  }
}

template <class T>
void product(const GemmCall<T>& call, T* packed_a) {
  constexpr int64_t kLanes = Vec<T>::kLanes;
  constexpr int64_t kCount = kSumBytes / static_cast<int64_t>(sizeof(T));
  alignas(64) T sums[kCount];
  pack_factors(call, packed_a);
  // A row of sums is not a multiple of 4 KiB away from the next one, which would share its set.
  // With one row, longer panels suit the memory better.
  const int64_t longest = call.m == 1 ? kCount : 512;
  const int64_t panel = smaller<int64_t>(kCount / call.m / (2 * kLanes) * (2 * kLanes), longest);
  for (int64_t column = 0; column < call.n; column += panel) {
    const int64_t columns = smaller(panel, call.n - column);
    const T* b = call.b + column;
    const T* a = packed_a;
    int64_t p = 0;
    for (; p + kDeep <= call.k; p += kDeep, a += call.m * kDeep) {
      add_pass<T, kDeep>(p == 0, call.m, a, b + p * call.b_row, call.b_row, sums, panel, columns);
    }
    for (int64_t q = 0; p < call.k; ++p, ++q)
      add_pass<T, 1>(p == 0, call.m, a + q, b + p * call.b_row, call.b_row, sums, panel, columns);
    for (int64_t i = 0; i < call.m; ++i) {
      T* c = call.c + i * call.ldc + column;
      for (int64_t j = 0; j < columns; j += kLanes) {
        store_scaled(c + j, Vec<T>::load(sums + i * panel + j), columns - j, call.alpha, call.beta);
      }
    }
  }
}

}  // namespace few_rows

#include "ops/kernel/isa_end.h"
