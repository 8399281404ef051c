// Compiled once for each instruction set (FLOW_ISA), see ops/gemm_kernels.h. Calls no function with
// external linkage.
//
// The blocked kernel follows Goto and van de Geijn (2008): panels of B (kDepth x kColumns) stay in
// the outer caches, blocks of A (kRowBlock x kDepth) in L2, and a register tile of kTileRows x
// kTileColumns runs over the depth.

#include "ops/gemm_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if FLOW_ISA == 2
#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")
#define FLOW_ISA_NAMESPACE isa_avx512
#elif FLOW_ISA == 1
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define FLOW_ISA_NAMESPACE isa_avx2
#else
#define FLOW_ISA_NAMESPACE isa_baseline
#endif

namespace flow::ops::FLOW_ISA_NAMESPACE {
namespace {

#include "ops/gemm_lanes.h"

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
template <class Lane>
void store_scaled(typename Lane::Element* c, typename Lane::Vector sum, int64_t count,
                  const typename Lane::Element& alpha, const typename Lane::Element& beta) {
  using T = typename Lane::Element;
  if (alpha != T{1}) sum = Lane::multiply(sum, Lane::broadcast(&alpha));
  if (count >= Lane::kWidth) {
    if (beta != T{0}) sum = Lane::multiply_add(Lane::load(c), Lane::broadcast(&beta), sum);
    Lane::store(c, sum);
  } else if (count > 0) {
    const int part = static_cast<int>(count);
    if (beta != T{0}) {
      sum = Lane::multiply_add(Lane::load_first(c, part), Lane::broadcast(&beta), sum);
    }
    Lane::store_first(c, sum, part);
  }
}

// kRows x (kVectors registers) of C straight from A and B; the last register of a row holds `tail`
// columns if kTail.
template <class Lane, int kRows, int kVectors, bool kTail>
void direct_tile(const GemmCall<typename Lane::Element>& call, int64_t row, int64_t column,
                 int tail) {
  using T = typename Lane::Element;
  typename Lane::Vector sum[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v)
      sum[r][v] = Lane::zero();
  }
  const T* a = call.a + row * call.a_row;
  const T* b = call.b + column;
  for (int64_t p = 0; p < call.k; ++p) {
    typename Lane::Vector b_row[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      b_row[v] = kTail && v == kVectors - 1 ? Lane::load_first(b + v * Lane::kWidth, tail)
                                            : Lane::load(b + v * Lane::kWidth);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const typename Lane::Vector factor = Lane::broadcast(a + r * call.a_row);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        sum[r][v] = Lane::multiply_add(factor, b_row[v], sum[r][v]);
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
      const int64_t count = kTail && v == kVectors - 1 ? tail : Lane::kWidth;
      store_scaled<Lane>(c + v * Lane::kWidth, sum[r][v], count, call.alpha, call.beta);
    }
  }
}

template <class Lane, int kRows>
void direct_rows(const GemmCall<typename Lane::Element>& call, int64_t row) {
  constexpr int64_t kWide = 2 * Lane::kWidth;
  int64_t column = 0;
  for (; column + kWide <= call.n; column += kWide) {
    direct_tile<Lane, kRows, 2, false>(call, row, column, 0);
  }
  const int rest = static_cast<int>(call.n - column);
  if (rest > Lane::kWidth) {
    direct_tile<Lane, kRows, 2, true>(call, row, column, rest - Lane::kWidth);
  } else if (rest == Lane::kWidth) {
    direct_tile<Lane, kRows, 1, false>(call, row, column, 0);
  } else if (rest > 0) {
    direct_tile<Lane, kRows, 1, true>(call, row, column, rest);
  }
}

template <class Lane>
void direct(const GemmCall<typename Lane::Element>& user_call, typename Lane::Element* panel) {
  GemmCall<typename Lane::Element> call = user_call;
  if (call.b_col != 1) {  // B is transposed: the tiles need its rows contiguous
    for (int64_t j = 0; j < call.n; ++j) {
      const typename Lane::Element* source = call.b + j * call.b_col;
      for (int64_t p = 0; p < call.k; ++p)
        panel[p * call.n + j] = source[p * call.b_row];
    }
    call.b = panel;
    call.b_row = call.n;
  }
  int64_t row = 0;
  for (; row + 4 <= call.m; row += 4)
    direct_rows<Lane, 4>(call, row);
  switch (call.m - row) {
    case 3:
      direct_rows<Lane, 3>(call, row);
      break;
    case 2:
      direct_rows<Lane, 2>(call, row);
      break;
    case 1:
      direct_rows<Lane, 1>(call, row);
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
template <class Lane>
void packed_tile(int64_t depth, const typename Lane::Element* a, const typename Lane::Element* b,
                 typename Lane::Element* c, int64_t ldc, int64_t rows, int64_t columns,
                 typename Lane::Element alpha, typename Lane::Element beta) {
  typename Lane::Vector sum[kTileRows][kTileVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kTileVectors; ++v)
      sum[r][v] = Lane::zero();
  }
  for (int64_t p = 0; p < depth; ++p) {
    typename Lane::Vector b_row[kTileVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kTileVectors; ++v)
      b_row[v] = Lane::load(b + v * Lane::kWidth);
#pragma GCC unroll 16
    for (int r = 0; r < kTileRows; ++r) {
      const typename Lane::Vector factor = Lane::broadcast(a + r);
#pragma GCC unroll 4
      for (int v = 0; v < kTileVectors; ++v) {
        sum[r][v] = Lane::multiply_add(factor, b_row[v], sum[r][v]);
      }
    }
    a += kTileRows;
    b += kTileVectors * Lane::kWidth;
  }
#pragma GCC unroll 16
  for (int r = 0; r < kTileRows; ++r) {
    if (r < rows) {
#pragma GCC unroll 4
      for (int v = 0; v < kTileVectors; ++v) {
        store_scaled<Lane>(c + r * ldc + v * Lane::kWidth, sum[r][v], columns - v * Lane::kWidth,
                           alpha, beta);
      }
    }
  }
}

template <class Lane>
constexpr int64_t panel_size() {
  return kRowBlock * kDepth + kDepth * kColumns;
}

template <class Lane>
void blocked(const GemmCall<typename Lane::Element>& call, typename Lane::Element* panel) {
  using T = typename Lane::Element;
  constexpr int kTileColumns = kTileVectors * Lane::kWidth;
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
            packed_tile<Lane>(depth, packed_a + i * depth, packed_b + j * depth,
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
    .f32 = {direct<FloatLane>, blocked<FloatLane>, panel_size<FloatLane>()},
    .f64 = {direct<DoubleLane>, blocked<DoubleLane>, panel_size<DoubleLane>()},
};

}  // namespace flow::ops::FLOW_ISA_NAMESPACE

#if FLOW_ISA != 0
#pragma GCC pop_options
#endif
