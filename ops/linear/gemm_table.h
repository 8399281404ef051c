#pragma once

// The library that multiplies a shape fastest on one thread. The measurements are committed;
// tools/calibrate writes them.

#include <cstdint>

#include "ops/kernel/cpu_features.h"
#include "ops/linear/gemm.h"
#include "ops/linear/gemm_backend.h"

namespace flow::ops {

// The sizes of one dim are classified by the nearest of these values in proportion: 1..3, 4..12,
// 13..24, 25..48 and so on; the last class has no upper end.
inline constexpr int kGemmSizeClasses = 10;
inline constexpr int64_t kGemmClassSizes[kGemmSizeClasses] = {1,   8,   16,  32,   64,
                                                              128, 256, 512, 1024, 2048};

int gemm_size_class(int64_t size);

// For float (0) and double (1), for NN, NT, TN, TT and for the class of m: a letter for each class
// of n and, within it, of k. w: own kernels, d: oneDNN, o: OpenBLAS. A space separates the classes
// of n.
struct GemmTable {
  const char* rows[2][4][kGemmSizeClasses];
};

extern const GemmTable kGemmTableAvx2;
extern const GemmTable kGemmTableAvx512;

// Returns the back end that was measured fastest for the product: kOwn, kOneDnn or kOpenBlas, even
// if that back end is absent.
template <class T>
GemmBackend fastest_gemm_backend(CpuIsa isa, Transpose transpose_a, Transpose transpose_b,
                                 int64_t m, int64_t n, int64_t k);

}  // namespace flow::ops
