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

GemmTable::GemmTable(const Text& text) {
  for (int type = 0; type < kNumTypes; ++type) {
    for (int form = 0; form < kNumForms; ++form) {
      for (int m = 0; m < kGemmSizeClasses; ++m) {
        const char* row = text.rows[type][form][m];
        for (int n = 0; n < kGemmSizeClasses; ++n) {
          for (int k = 0; k < kGemmSizeClasses; ++k)
            letter(type, form, m, n, k) = row[n * (kGemmSizeClasses + 1) + k];
        }
      }
    }
  }
}

template <class T>
GemmBackend GemmTable::fastest(Transpose transpose_a, Transpose transpose_b, int64_t m, int64_t n,
                               int64_t k) const {
  const int type = std::is_same_v<T, float> ? 0 : 1;
  const int form =
      (transpose_a == Transpose::kYes ? 2 : 0) + (transpose_b == Transpose::kYes ? 1 : 0);
  switch (letter(type, form, gemm_size_class(m), gemm_size_class(n), gemm_size_class(k))) {
    case 'd':
      return GemmBackend::kOneDnn;
    case 'o':
      return GemmBackend::kOpenBlas;
    default:
      return GemmBackend::kOwn;
  }
}

template GemmBackend GemmTable::fastest<float>(Transpose, Transpose, int64_t, int64_t,
                                               int64_t) const;
template GemmBackend GemmTable::fastest<double>(Transpose, Transpose, int64_t, int64_t,
                                                int64_t) const;

}  // namespace flow::ops
