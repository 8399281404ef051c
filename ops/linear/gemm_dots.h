// Products of few rows or few columns whose operands are both contiguous along k, such as a linear
// layer with a small batch, for ops/linear/gemm_cpu.cpp. Each element of C is a dot product that is
// summed lane by lane, so its bits do not depend on its place. Nothing is packed, and the operand
// with more rows is read from memory once.
#pragma once

#include <utility>

#include "ops/kernel/vector.h"
#include "ops/linear/gemm_kernels.h"

#include "ops/kernel/isa_begin.h"

namespace dots {

// With more rows, packing the other operand pays. With more columns, B is small and its rows fill
// vectors.
constexpr int64_t kMaxRows = 32;
constexpr int64_t kMaxColumns = 8;

// The sums of a tile, of kRows rows of the one operand and kColumns of the other, stay within 32
// (AVX-512) or 16 registers. One row takes more columns, to hide the latency of its additions.
constexpr int kRows = FLOW_ISA == 2 ? 4 : 2;
constexpr int kColumns = 4;
constexpr int kColumnsOfOneRow = 8;

// c[i * c_row + j * c_column] = alpha * (row i of `few` times row j of `many`) + beta * c[…].
template <class T>
struct Dots {
  const T* few;
  int64_t few_row;
  const T* many;
  int64_t many_row;
  int64_t k;
  T* c;
  int64_t c_row, c_column;
  T alpha, beta;
};

// Adds the products of elements p, p + 1, … of the rows; of `left` elements if kTail.
template <class T, int kM, int kN, bool kTail>
inline void add_products(const Dots<T>& dots, int64_t p, int64_t left, Vec<T> (&sums)[kM][kN]) {
  const auto load = [&](const T* from) {
    return kTail ? Vec<T>::load_n(from, left) : Vec<T>::load(from);
  };
  Vec<T> few[kM];
#pragma GCC unroll 8
  for (int i = 0; i < kM; ++i)
    few[i] = load(dots.few + i * dots.few_row + p);
#pragma GCC unroll 8
  for (int j = 0; j < kN; ++j) {
    const Vec<T> many = load(dots.many + j * dots.many_row + p);
#pragma GCC unroll 8
    for (int i = 0; i < kM; ++i)
      sums[i][j] = fma(few[i], many, sums[i][j]);
  }
}

template <class T, int kM, int kN>
void tile(const Dots<T>& dots) {
  constexpr int64_t kLanes = Vec<T>::kLanes;
  Vec<T> sums[kM][kN];
#pragma GCC unroll 8
  for (int i = 0; i < kM; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kN; ++j)
      sums[i][j] = Vec<T>::zero();
  }
  int64_t p = 0;
  for (; p + kLanes <= dots.k; p += kLanes)
    add_products<T, kM, kN, false>(dots, p, kLanes, sums);
  if (p < dots.k) add_products<T, kM, kN, true>(dots, p, dots.k - p, sums);
#pragma GCC unroll 8
  for (int i = 0; i < kM; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kN; ++j) {
      T& c = dots.c[i * dots.c_row + j * dots.c_column];
      const T product = dots.alpha * sum(sums[i][j]);
      c = dots.beta == T{0} ? product : product + dots.beta * c;
    }
  }
}

// All rows of `few` times the same kN rows of `many`, which stay in a cache.
template <class T, int kN>
void column_group(Dots<T> dots, int64_t rows) {
  const auto next = [&](int64_t done) {
    rows -= done;
    dots.few += done * dots.few_row;
    dots.c += done * dots.c_row;
  };
  for (; rows >= kRows; next(kRows))
    tile<T, kRows, kN>(dots);
  if (kRows > 2 && rows >= 2) {
    tile<T, 2, kN>(dots);
    next(2);
  }
  if (rows == 1) tile<T, 1, kN>(dots);
}

template <class T>
void product(const GemmCall<T>& call) {
  Dots<T> dots{.few = call.a,
               .few_row = call.a_row,
               .many = call.b,
               .many_row = call.b_col,
               .k = call.k,
               .c = call.c,
               .c_row = call.ldc,
               .c_column = 1,
               .alpha = call.alpha,
               .beta = call.beta};
  int64_t rows = call.m, columns = call.n;
  if (rows > columns) {
    std::swap(dots.few, dots.many);
    std::swap(dots.few_row, dots.many_row);
    std::swap(dots.c_row, dots.c_column);
    std::swap(rows, columns);
  }
  const auto at = [&](int64_t column) {
    Dots<T> part = dots;
    part.many += column * dots.many_row;
    part.c += column * dots.c_column;
    return part;
  };
  int64_t column = 0;
  if (rows == 1) {
    for (; column + kColumnsOfOneRow <= columns; column += kColumnsOfOneRow)
      tile<T, 1, kColumnsOfOneRow>(at(column));
  }
  for (; column + kColumns <= columns; column += kColumns)
    column_group<T, kColumns>(at(column), rows);
  for (; column < columns; ++column)
    column_group<T, 1>(at(column), rows);
}

}  // namespace dots

#include "ops/kernel/isa_end.h"
