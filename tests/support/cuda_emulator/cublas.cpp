// The functions for which ops/vendor/cublas.cpp uses a library, as loops.
#include "ops/vendor/cublas.h"

#include <type_traits>

#include "core/device/cuda_launch.h"
#include "core/dtype.h"

namespace flow::ops {

namespace {

template <class T>
void multiply(const DeviceGemm& gemm, const DeviceGemmData& data) {
  using Sum = std::conditional_t<sizeof(T) == 8, double, float>;
  const auto* bias = static_cast<const T*>(data.bias);
  auto* c = static_cast<T*>(data.c);
  for (int64_t matrix = 0; matrix < gemm.batch; ++matrix) {
    const T* a = static_cast<const T*>(data.a) + matrix * gemm.a_step;
    const T* b = static_cast<const T*>(data.b) + matrix * gemm.b_step;
    for (int64_t i = 0; i < gemm.m; ++i) {
      for (int64_t j = 0; j < gemm.n; ++j) {
        Sum sum = gemm.has_bias ? static_cast<Sum>(bias[j]) : Sum{0};
        for (int64_t k = 0; k < gemm.k; ++k) {
          const T x = a[gemm.a_transposed ? k * gemm.a_leading + i : i * gemm.a_leading + k];
          const T y = b[gemm.b_transposed ? j * gemm.b_leading + k : k * gemm.b_leading + j];
          sum += static_cast<Sum>(x) * static_cast<Sum>(y);
        }
        *c++ = static_cast<T>(sum);
      }
    }
  }
}

}  // namespace

bool run_device_gemm(const KernelContext& ctx, const DeviceGemm& gemm, const DeviceGemmData& data) {
  if (cuda_emulator::refuses_products()) return false;
  FLOW_CUDA_CALL(cuda_emulator::enqueue(cuda::stream_of(ctx), [gemm, data] {
    dispatch_floating(gemm.dtype, [&]<class T>() { multiply<T>(gemm, data); });
  }));
  return true;
}

}  // namespace flow::ops
