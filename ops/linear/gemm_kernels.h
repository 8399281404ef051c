#pragma once

// flow's own CPU kernels of gemm, one table for each instruction set. They allocate nothing and
// call no library. ops/linear/gemm_blocked.cpp combines the blocked ones. Everything is row-major,
// as in ops/linear/gemm.h.

#include <cstdint>

#include "ops/kernel/cpu_features.h"

namespace flow::ops {

// C = alpha * op(A) * op(B) + beta * C with op(A): (m, k), op(B): (k, n), C: (m, n); all sizes > 0.
// Element (i, p) of op(A) is a[i * a_row + p * a_col], and op(B) follows the same pattern; one of
// the two strides is 1.
template <class T>
struct GemmCall {
  int64_t m, n, k;
  T alpha;
  const T* a;
  int64_t a_row, a_col;
  const T* b;
  int64_t b_row, b_col;
  T beta;  // 0: C is written without being read
  T* c;
  int64_t ldc;
  // Added to each row, with beta = 0; may be null. Only the blocked kernels read it.
  const T* bias = nullptr;
};

// A part of one dim.
struct GemmRange {
  int64_t begin = 0;
  int64_t size = 0;
};

// Memory that will be read next: `rows` stretches of `row_bytes` bytes, `stride` bytes apart.
// Operands that were not used recently are in the third-level cache or in main memory, so they are
// prefetched while tiles are multiplied.
struct GemmAhead {
  const void* first = nullptr;
  int64_t rows = 0;
  int64_t row_bytes = 0;
  int64_t stride = 0;
};

// Packed operands are stored in tiles of tile_rows (A) or tile_columns (B) times the depth; the
// last tile is filled up with zeros.
template <class T>
struct GemmKernels {
  // Multiplies without packing A. Requires: n rounded up to tile_columns, times k, is at most
  // kDirectPanel.
  void (*direct)(const GemmCall<T>& call);

  // Multiplies without packing B, whose rows must be contiguous (b_col == 1). Requires: at most
  // `few_rows` rows; `packed_a` has room for A with k rounded up to few_rows_depth.
  void (*few_rows_product)(const GemmCall<T>& call, T* packed_a);
  int64_t few_rows, few_rows_depth;

  // Multiplies without packing, where both operands are contiguous along k (a_col == 1 and b_row ==
  // 1). Meant for at most `dot_rows` rows or `dot_columns` columns.
  void (*dots)(const GemmCall<T>& call);
  int64_t dot_rows, dot_columns;

  int64_t tile_rows;
  int64_t tile_columns;
  // The longest part of k that is multiplied at once, and the rows of A that are packed at once, a
  // multiple of tile_rows. Longer parts read and write C less often, but a tile of the operand that
  // stays has to fit the first-level cache, and the packed rows of A half of the second. CpuTable
  // has the longest part of floats where the rows of A are contiguous.
  int64_t max_depth;
  int64_t unit_rows;
  // With so many rows or fewer, reading B from memory takes most of the time. Narrow panels of it
  // are then packed, and the next one is prefetched. 0: not measured to be faster.
  int64_t narrow_rows;
  // `packed` has room for the range rounded up to whole tiles, times the depth.
  void (*pack_a)(const GemmCall<T>& call, GemmRange rows, GemmRange depth, T* packed);
  void (*pack_b)(const GemmCall<T>& call, GemmRange columns, GemmRange depth, T* packed);
  // Computes the block of C from packed A and B of this depth range. beta applies to the range that
  // begins at 0; later ranges are added. At the same time `ahead_a` and `ahead_b` are prefetched
  // into the second-level cache.
  void (*multiply)(const GemmCall<T>& call, GemmRange rows, GemmRange columns, GemmRange depth,
                   const T* packed_a, const T* packed_b, const GemmAhead& ahead_a,
                   const GemmAhead& ahead_b);
};

inline constexpr int64_t kDirectPanel = 9216;

struct GemmKernelSet {
  GemmKernels<float> f32;
  GemmKernels<double> f64;
};

FLOW_DECLARE_PER_ISA(extern const GemmKernelSet kGemmKernels)

}  // namespace flow::ops
