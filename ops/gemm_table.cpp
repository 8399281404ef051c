#include "ops/gemm_table.h"

#include <algorithm>
#include <bit>
#include <type_traits>

namespace flow::ops {

int gemm_size_class(int64_t size) {
  if (size <= 3) return 0;
  // 1, 2..3, 4..7 and so on for sizes 4..6, 7..12, 13..24
  const auto thirds = static_cast<uint64_t>(size - 1) / 3;
  const int doublings = static_cast<int>(std::bit_width(thirds)) - 1;
  return std::clamp(doublings, 1, kGemmSizeClasses - 1);
}

// float: OpenBLAS and the own kernel lead below 64, oneDNN above, except that its avx2 kernels fall
// behind where A is transposed.
template <class T>
GemmBackend fastest_gemm_backend(CpuIsa isa, Transpose transpose_a, Transpose transpose_b,
                                 int64_t m, int64_t n, int64_t k) {
  const int largest = std::max({gemm_size_class(m), gemm_size_class(n), gemm_size_class(k)});
  constexpr int kClassOf64 = 4;
  constexpr int kClassOf256 = 6;
  if (largest < kClassOf64 && transpose_b == Transpose::kNo) return GemmBackend::kOwn;
  if (!std::is_same_v<T, float> || largest < kClassOf64) return GemmBackend::kOpenBlas;
  const bool slow = isa != CpuIsa::kAvx512 && transpose_a == Transpose::kYes;
  return slow && largest >= kClassOf256 ? GemmBackend::kOpenBlas : GemmBackend::kOneDnn;
}

template GemmBackend fastest_gemm_backend<float>(CpuIsa, Transpose, Transpose, int64_t, int64_t,
                                                 int64_t);
template GemmBackend fastest_gemm_backend<double>(CpuIsa, Transpose, Transpose, int64_t, int64_t,
                                                  int64_t);

}  // namespace flow::ops
