#pragma once

// Which library multiplies a shape fastest on one thread: committed measurements, written by
// tools/calibrate.

#include <cstdint>

#include "ops/kernel/cpu_features.h"
#include "ops/linear/gemm.h"
#include "ops/linear/gemm_backend.h"

namespace flow::ops {

// Sizes of one dim are told apart by the nearest of these in
// proportion: 1..3, 4..12, 13..24, 25..48 and so on; the last class has no end.
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

// The back end measured fastest for the product: kOwn, kOneDnn or kOpenBlas, whether it is present
// or not.
template <class T>
GemmBackend fastest_gemm_backend(CpuIsa isa, Transpose transpose_a, Transpose transpose_b,
                                 int64_t m, int64_t n, int64_t k);

}  // namespace flow::ops
