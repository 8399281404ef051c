// Matrix products on a CUDA device by cuBLAS, which is loaded at the first product that cuBLASLt
// does not take.
#pragma once

#include "ops/vendor/cublas_lt.h"

namespace flow::ops {

// Queues c = a b, or c += a b if `adds`, and returns true. The bias is ignored. Returns false and
// queues nothing if the library is missing or refuses the product.
bool run_device_gemm_plain(const KernelContext& ctx, const DeviceGemm& gemm,
                           const DeviceGemmData& data, bool adds);

}  // namespace flow::ops
