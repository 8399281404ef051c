#pragma once

// The library that multiplies each class of shapes fastest on one thread.

#include <array>
#include <cstddef>
#include <cstdint>

#include "ops/linear/gemm.h"
#include "ops/linear/gemm_backend.h"

namespace flow::ops {

// The sizes of one dim are classified by the nearest of these values in proportion: 1..3, 4..12,
// 13..24, 25..48 and so on; the last class has no upper end.
inline constexpr int kGemmSizeClasses = 10;
inline constexpr int64_t kGemmClassSizes[kGemmSizeClasses] = {1,   8,   16,  32,   64,
                                                              128, 256, 512, 1024, 2048};

int gemm_size_class(int64_t size);

// For float (0) and double (1), for NN (0), NT, TN, TT (3), and for the classes of m, n and k: a
// letter. w: own kernels, d: oneDNN, o: OpenBLAS.
class GemmTable {
 public:
  static constexpr int kNumTypes = 2;
  static constexpr int kNumForms = 4;

  // As it is committed: a text for each class of m, where a space separates the classes of n.
  struct Text {
    const char* rows[kNumTypes][kNumForms][kGemmSizeClasses];
  };

  // Own kernels for all shapes.
  GemmTable() { letters_.fill('w'); }

  explicit GemmTable(const Text& text);

  char& letter(int type, int form, int m, int n, int k) {
    return letters_[index(type, form, m, n, k)];
  }

  char letter(int type, int form, int m, int n, int k) const {
    return letters_[index(type, form, m, n, k)];
  }

  // The back end that was measured fastest for the product: kOwn, kOneDnn or kOpenBlas, even if
  // that back end is absent.
  template <class T>
  GemmBackend fastest(Transpose transpose_a, Transpose transpose_b, int64_t m, int64_t n,
                      int64_t k) const;

  friend bool operator==(const GemmTable&, const GemmTable&) = default;

 private:
  static size_t index(int type, int form, int m, int n, int k) {
    int i = type * kNumForms + form;
    for (const int size : {m, n, k})
      i = i * kGemmSizeClasses + size;
    return static_cast<size_t>(i);
  }

  std::array<char,
             size_t{kNumTypes} * kNumForms * kGemmSizeClasses * kGemmSizeClasses * kGemmSizeClasses>
      letters_;
};

// Measured on Intel Xeons.
extern const GemmTable::Text kGemmTableAvx2;
extern const GemmTable::Text kGemmTableAvx512;
extern const GemmTable::Text kGemmTableSapphireRapidsAvx512;
// Measured on AMD EPYCs.
extern const GemmTable::Text kGemmTableZen3Avx2;
extern const GemmTable::Text kGemmTableZen4Avx512;
extern const GemmTable::Text kGemmTableZen5Avx512;

}  // namespace flow::ops
