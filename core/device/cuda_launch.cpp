#include "core/device/cuda_launch.h"

#include <map>
#include <mutex>
#include <utility>

namespace flow::cuda {

namespace {

struct Allowed {
  std::mutex mutex;
  std::map<std::pair<int, const void*>, size_t> bytes;  // by device and kernel; guarded by mutex
};

Allowed& allowed() {
  static Allowed& instance = *new Allowed;  // never destroyed: ranks end late
  return instance;
}

}  // namespace

void allow_shared_memory(const void* kernel, size_t bytes) {
  int device = 0;
  FLOW_CUDA_CALL(cudaGetDevice(&device));
  const std::lock_guard lock(allowed().mutex);
  size_t& most = allowed().bytes[{device, kernel}];
  if (bytes <= most) return;
  FLOW_CUDA_CALL(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      static_cast<int>(bytes)));
  most = bytes;
}

}  // namespace flow::cuda
