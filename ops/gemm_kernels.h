#pragma once

// Own CPU kernels of gemm, one table for each instruction set. gemm.cpp chooses the table and calls
// it; the kernels allocate nothing and know no library. Rows and columns follow ops/gemm.h:
// everything is row-major.

#include <cstdint>

#include "ops/cpu_features.h"

namespace flow::ops {

// C = alpha * op(A) * op(B) + beta * C with op(A): (m, k), op(B): (k, n), C: (m, n); all sizes > 0.
// Element (i, p) of op(A) lies at a[i * a_row + p * a_col], likewise for op(B); one of the two
// strides is 1.
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
};

template <class T>
struct GemmKernels {
  // Without packing of A; `panel` has room for k * (n + 15) elements and is used when b_col != 1.
  void (*direct)(const GemmCall<T>& call, T* panel);
  // Packed and blocked for the caches; `panel` has blocked_panel_size elements, aligned to 64
  // bytes.
  void (*blocked)(const GemmCall<T>& call, T* panel);
  int64_t blocked_panel_size;
};

struct GemmKernelSet {
  GemmKernels<float> f32;
  GemmKernels<double> f64;
};

FLOW_DECLARE_PER_ISA(extern const GemmKernelSet kGemmKernels)

}  // namespace flow::ops
