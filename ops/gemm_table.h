#pragma once

// Which library multiplies a shape fastest on one thread: committed measurements, written by
// tools/calibrate.

#include <cstdint>

#include "ops/cpu_features.h"
#include "ops/gemm.h"
#include "ops/gemm_backend.h"

namespace flow::ops {

// Number of size classes of one dimension, and the size each was measured at. A size belongs to the
// nearest in proportion: 1..3, 4..12, 13..24, 25..48, ... , 769..1536, above.
inline constexpr int kGemmSizeClasses = 10;
inline constexpr int64_t kGemmClassSizes[kGemmSizeClasses] = {1,   8,   16,  32,   64,
                                                              128, 256, 512, 1024, 2048};

int gemm_size_class(int64_t size);

// The back end measured fastest for the product: kOwn, kOneDnn or kOpenBlas, whether it is present
// or not.
template <class T>
GemmBackend fastest_gemm_backend(CpuIsa isa, Transpose transpose_a, Transpose transpose_b,
                                 int64_t m, int64_t n, int64_t k);

}  // namespace flow::ops
