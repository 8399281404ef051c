// Matrix products on a CUDA device by cuBLASLt, which is loaded at its first use.
#pragma once

#include <cstdint>

#include "core/kernel.h"

namespace flow::ops {

// c (m, n) = a (m, k) b (k, n) [+ bias], row-major, for `batch` matrices that are `a_step`,
// `b_step` and m n elements apart. A transposed operand is stored as its transpose. `bias` holds n
// contiguous elements; null means no bias.
struct DeviceGemm {
  DType dtype = DType::kFloat32;  // floating; 16-bit operands are summed in float32
  int64_t m = 0, n = 0, k = 0;
  int64_t batch = 1;
  bool a_transposed = false, b_transposed = false;
  int64_t a_leading = 1, b_leading = 1;  // elements from one stored row to the next
  int64_t a_step = 0, b_step = 0;
  bool has_bias = false;
};

struct DeviceGemmData {
  const void* a;
  const void* b;
  const void* bias;
  void* c;
};

// Queues the product on the rank's stream and returns true. Tries the algorithms that cuBLASLt
// proposes, the best first, until it takes one; those that it refuses are not tried again for
// products of this form. If it takes none, returns false and queues nothing. Requires: sizes > 0.
bool run_device_gemm(const KernelContext& ctx, const DeviceGemm& gemm, const DeviceGemmData& data);

}  // namespace flow::ops
