#include "ops/linear/gemm_table.h"

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

template <class T>
GemmBackend fastest_gemm_backend(CpuIsa isa, Transpose transpose_a, Transpose transpose_b,
                                 int64_t m, int64_t n, int64_t k) {
  const GemmTable& table = isa == CpuIsa::kAvx512 ? kGemmTableAvx512 : kGemmTableAvx2;
  const int type = std::is_same_v<T, float> ? 0 : 1;
  const int transposes =
      (transpose_a == Transpose::kYes ? 2 : 0) + (transpose_b == Transpose::kYes ? 1 : 0);
  const char* row = table.rows[type][transposes][gemm_size_class(m)];
  switch (row[gemm_size_class(n) * (kGemmSizeClasses + 1) + gemm_size_class(k)]) {
    case 'd':
      return GemmBackend::kOneDnn;
    case 'o':
      return GemmBackend::kOpenBlas;
    default:
      return GemmBackend::kOwn;
  }
}

template GemmBackend fastest_gemm_backend<float>(CpuIsa, Transpose, Transpose, int64_t, int64_t,
                                                 int64_t);
template GemmBackend fastest_gemm_backend<double>(CpuIsa, Transpose, Transpose, int64_t, int64_t,
                                                  int64_t);

}  // namespace flow::ops
