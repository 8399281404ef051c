// Launches kernels from .cu files with a function instead of <<<>>>, so that a plain C++ compiler
// can build the same sources against the emulated CUDA of tests/support/cuda_emulator.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <cuda_runtime.h>

#include "core/device/cuda_error.h"
#include "core/kernel.h"

// Declares shared memory whose size is passed to launch(). In a kernel,
// FLOW_CUDA_DYNAMIC_SHARED(float, rows); declares float* rows, aligned to 16 bytes.
#if !defined(FLOW_CUDA_DYNAMIC_SHARED)
#define FLOW_CUDA_DYNAMIC_SHARED(Type, name)                    \
  extern __shared__ __align__(16) unsigned char name##_bytes[]; \
  Type* const name = reinterpret_cast<Type*>(name##_bytes)
#endif

namespace flow::cuda {

// The stream on which the call queues (RankDevice::stream()).
cudaStream_t stream_of(const KernelContext& ctx);

// Lets launches of a kernel on the current device have this much dynamic shared memory. The limit
// belongs to the kernel on that device, whoever launches it, so it is never lowered.
void allow_shared_memory(const void* kernel, size_t bytes);

// Queues kernel(args...) and converts the arguments to the kernel's parameter types. An empty grid
// launches nothing. Requests dynamic shared memory above 48 KiB if needed.
template <class... P, class... A>
void launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
            A&&... args) {
  static_assert(sizeof...(P) == sizeof...(A), "a kernel gets one argument per parameter");
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  constexpr size_t kFreeShared = 48 << 10;
  if (shared_bytes > kFreeShared)
    allow_shared_memory(reinterpret_cast<const void*>(kernel), shared_bytes);
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  FLOW_CUDA_CALL(cudaLaunchKernelEx(&config, kernel, static_cast<P>(std::forward<A>(args))...));
}

inline constexpr unsigned kBlockThreads = 256;

// The number of blocks for a loop in which each thread handles every (gridDim.x * blockDim.x)-th of
// n items. The cap is enough to fill the largest device several times over. Returns 0 if n is 0.
inline unsigned blocks_for(int64_t n, unsigned block_threads = kBlockThreads) {
  constexpr int64_t kMost = 4096;
  return static_cast<unsigned>(std::min<int64_t>((n + block_threads - 1) / block_threads, kMost));
}

}  // namespace flow::cuda
