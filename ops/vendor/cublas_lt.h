// Matrix products on a CUDA device by cuBLASLt, which is loaded at its first use.
#pragma once

#include <cstdint>

#include "core/kernel.h"

namespace flow::ops {

// What a product does besides multiplying.
enum class GemmEpilogue : uint8_t {
  kNone,
  kBias,      // adds `bias`, n elements, to each row of c
  kSumsOfA,   // writes to `sums`, m elements, the sum of each row of a
  kSumsOfB,   // writes to `sums`, n elements, the sum of each column of b
  kGelu,      // writes c to `aux`, (m, n), and gelu(c) to c, by the tanh approximation
  kBiasGelu,  // adds the bias, then as kGelu
  kGeluGrad,  // multiplies c by the derivative of gelu at `aux`
};

// c (m, n) = a (m, k) b (k, n), row-major, for `batch` matrices that are `a_step`, `b_step` and m n
// elements apart. A transposed operand is stored as its transpose. The vectors of epilogues are
// contiguous and of the same dtype. All but a bias need a batch of 1, and those with an aux an n
// that 8 divides; cuBLASLt has no epilogue for float64.
struct DeviceGemm {
  DType dtype = DType::kFloat32;  // floating; 16-bit operands are summed in float32
  int64_t m = 0, n = 0, k = 0;
  int64_t batch = 1;
  bool a_transposed = false, b_transposed = false;
  int64_t a_leading = 1, b_leading = 1;  // elements from one stored row to the next
  int64_t a_step = 0, b_step = 0;
  GemmEpilogue epilogue = GemmEpilogue::kNone;
};

struct DeviceGemmData {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* bias = nullptr;
  void* sums = nullptr;
  void* aux = nullptr;
  void* c = nullptr;
};

// Queues the product on the rank's stream and returns true. Tries the algorithms that cuBLASLt
// proposes, the best first, until it takes one; those that it refuses are not tried again for
// products of this form. If it takes none, returns false and queues nothing. Requires: sizes > 0.
bool run_device_gemm(const KernelContext& ctx, const DeviceGemm& gemm, const DeviceGemmData& data);

}  // namespace flow::ops
