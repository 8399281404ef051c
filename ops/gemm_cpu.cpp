// Compiled once for each instruction set (FLOW_ISA), see ops/gemm_kernels.h. Calls no function with
// external linkage.
//
// The blocked kernel follows Goto and van de Geijn (2008): panels of B (kDepth x kColumns) stay in
// the outer caches, blocks of A (kRowBlock x kDepth) in L2, and a register tile of kTileRows x
// kTileColumns runs over the depth.

#include "ops/gemm_kernels.h"
#include "ops/vector.h"

#include "ops/isa_begin.h"

namespace {

// Register tile: rows x vectors of accumulators, plus one row of B and one broadcast, within 32
// (AVX-512) or 16 registers.
#if FLOW_ISA == 2
constexpr int kTileRows = 14;
#elif FLOW_ISA == 1
constexpr int kTileRows = 6;
#else
constexpr int kTileRows = 4;
#endif
constexpr int kTileVectors = 2;
constexpr int64_t kDepth = 256;
constexpr int64_t kRowBlock = int64_t{12} * kTileRows;
constexpr int64_t kColumns = 2048;  // a multiple of every tile width

template <class T>
T smaller(T a, T b) {
  return a < b ? a : b;
}

// c[0..count) = alpha * sum + beta * c, where count may be less than a register.
template <class T>
void store_scaled(T* c, Vec<T> sum, int64_t count, const T& alpha, const T& beta) {
  if (alpha != T{1}) sum = sum * Vec<T>::fill(alpha);
  if (count >= Vec<T>::kLanes) {
    if (beta != T{0}) sum = fma(Vec<T>::load(c), Vec<T>::fill(beta), sum);
    sum.store(c);
  } else if (count > 0) {
    const int part = static_cast<int>(count);
    if (beta != T{0}) {
      sum = fma(Vec<T>::load_n(c, part), Vec<T>::fill(beta), sum);
    }
    sum.store_n(c, part);
  }
}

// kRows x (kVectors registers) of C straight from A and B; the last register of a row holds `tail`
// columns if kTail.
template <class T, int kRows, int kVectors, bool kTail>
void direct_tile(const GemmCall<T>& call, int64_t row, int64_t column, int tail) {
  Vec<T> sum[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v)
      sum[r][v] = Vec<T>::zero();
  }
  const T* a = call.a + row * call.a_row;
  const T* b = call.b + column;
  for (int64_t p = 0; p < call.k; ++p) {
    Vec<T> b_row[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      b_row[v] = kTail && v == kVectors - 1 ? Vec<T>::load_n(b + v * Vec<T>::kLanes, tail)
                                            : Vec<T>::load(b + v * Vec<T>::kLanes);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const Vec<T> factor = Vec<T>::fill(a[r * call.a_row]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        sum[r][v] = fma(factor, b_row[v], sum[r][v]);
      }
    }
    a += call.a_col;
    b += call.b_row;
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    T* c = call.c + (row + r) * call.ldc + column;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const int64_t count = kTail && v == kVectors - 1 ? tail : Vec<T>::kLanes;
      store_scaled<T>(c + v * Vec<T>::kLanes, sum[r][v], count, call.alpha, call.beta);
    }
  }
}

template <class T, int kRows>
void direct_rows(const GemmCall<T>& call, int64_t row) {
  constexpr int64_t kWide = 2 * Vec<T>::kLanes;
  int64_t column = 0;
  for (; column + kWide <= call.n; column += kWide) {
    direct_tile<T, kRows, 2, false>(call, row, column, 0);
  }
  const int rest = static_cast<int>(call.n - column);
  if (rest > Vec<T>::kLanes) {
    direct_tile<T, kRows, 2, true>(call, row, column, rest - Vec<T>::kLanes);
  } else if (rest == Vec<T>::kLanes) {
    direct_tile<T, kRows, 1, false>(call, row, column, 0);
  } else if (rest > 0) {
    direct_tile<T, kRows, 1, true>(call, row, column, rest);
  }
}

template <class T>
void direct(const GemmCall<T>& user_call, T* panel) {
  GemmCall<T> call = user_call;
  if (call.b_col != 1) {  // B is transposed: the tiles need its rows contiguous
    for (int64_t j = 0; j < call.n; ++j) {
      const T* source = call.b + j * call.b_col;
      for (int64_t p = 0; p < call.k; ++p)
        panel[p * call.n + j] = source[p * call.b_row];
    }
    call.b = panel;
    call.b_row = call.n;
  }
  int64_t row = 0;
  for (; row + 4 <= call.m; row += 4)
    direct_rows<T, 4>(call, row);
  switch (call.m - row) {
    case 3:
      direct_rows<T, 3>(call, row);
      break;
    case 2:
      direct_rows<T, 2>(call, row);
      break;
    case 1:
      direct_rows<T, 1>(call, row);
      break;
    default:
      break;
  }
}

// packed: tiles of kWidth x depth, element (i, p) of a tile at p * kWidth + i, short tiles filled
// with zeros. Used for both operands: `along` is the stride over i, `deep` the stride over p.
template <int kWidth, class T>
void pack(const T* source, int64_t along, int64_t deep, int64_t count, int64_t depth, T* packed) {
  for (int64_t start = 0; start < count; start += kWidth) {
    const T* tile = source + start * along;
    const int64_t filled = smaller<int64_t>(kWidth, count - start);
    if (filled < kWidth) {
      for (int64_t p = 0; p < depth; ++p) {
        for (int64_t i = 0; i < kWidth; ++i) {
          packed[p * kWidth + i] = i < filled ? tile[i * along + p * deep] : T{0};
        }
      }
    } else if (along == 1) {
      for (int64_t p = 0; p < depth; ++p) {
        __builtin_memcpy(packed + p * kWidth, tile + p * deep, kWidth * sizeof(T));
      }
    } else {
      for (int64_t p = 0; p < depth; ++p) {
#pragma GCC unroll 32
        for (int64_t i = 0; i < kWidth; ++i)
          packed[p * kWidth + i] = tile[i * along + p * deep];
      }
    }
    packed += kWidth * depth;
  }
}

// One register tile from packed panels; `rows` and `columns` say how much of it lies inside C.
template <class T>
void packed_tile(int64_t depth, const T* a, const T* b, T* c, int64_t ldc, int64_t rows,
                 int64_t columns, T alpha, T beta) {
  Vec<T> sum[kTileRows][kTileVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kTileVectors; ++v)
      sum[r][v] = Vec<T>::zero();
  }
  for (int64_t p = 0; p < depth; ++p) {
    Vec<T> b_row[kTileVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kTileVectors; ++v)
      b_row[v] = Vec<T>::load(b + v * Vec<T>::kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kTileRows; ++r) {
      const Vec<T> factor = Vec<T>::fill(a[r]);
#pragma GCC unroll 4
      for (int v = 0; v < kTileVectors; ++v) {
        sum[r][v] = fma(factor, b_row[v], sum[r][v]);
      }
    }
    a += kTileRows;
    b += kTileVectors * Vec<T>::kLanes;
  }
#pragma GCC unroll 16
  for (int r = 0; r < kTileRows; ++r) {
    if (r < rows) {
#pragma GCC unroll 4
      for (int v = 0; v < kTileVectors; ++v) {
        store_scaled<T>(c + r * ldc + v * Vec<T>::kLanes, sum[r][v], columns - v * Vec<T>::kLanes,
                        alpha, beta);
      }
    }
  }
}

template <class T>
constexpr int64_t panel_size() {
  return kRowBlock * kDepth + kDepth * kColumns;
}

template <class T>
void blocked(const GemmCall<T>& call, T* panel) {
  constexpr int kTileColumns = kTileVectors * Vec<T>::kLanes;
  T* packed_b = panel;
  T* packed_a = panel + kDepth * kColumns;
  for (int64_t column = 0; column < call.n; column += kColumns) {
    const int64_t columns = smaller(kColumns, call.n - column);
    for (int64_t deep = 0; deep < call.k; deep += kDepth) {
      const int64_t depth = smaller(kDepth, call.k - deep);
      const T beta = deep == 0 ? call.beta : T{1};
      pack<kTileColumns>(call.b + deep * call.b_row + column * call.b_col, call.b_col, call.b_row,
                         columns, depth, packed_b);
      for (int64_t row = 0; row < call.m; row += kRowBlock) {
        const int64_t rows = smaller(kRowBlock, call.m - row);
        pack<kTileRows>(call.a + row * call.a_row + deep * call.a_col, call.a_row, call.a_col, rows,
                        depth, packed_a);
        for (int64_t j = 0; j < columns; j += kTileColumns) {
          for (int64_t i = 0; i < rows; i += kTileRows) {
            packed_tile<T>(depth, packed_a + i * depth, packed_b + j * depth,
                           call.c + (row + i) * call.ldc + column + j, call.ldc, rows - i,
                           columns - j, call.alpha, beta);
          }
        }
      }
    }
  }
}

}  // namespace

const GemmKernelSet kGemmKernels = {
    .f32 = {direct<float>, blocked<float>, panel_size<float>()},
    .f64 = {direct<double>, blocked<double>, panel_size<double>()},
};

#include "ops/isa_end.h"
