// What the emulator's files share.
#pragma once

#include <mutex>

#include "cuda_runtime.h"

namespace cuda_emulator {

// Guards all state of the emulator; whoever runs a stream's work holds it. Recursive, as work may
// wait for other streams.
std::recursive_mutex& device_mutex();

// While one lives, device memory can be read and written. Requires device_mutex().
class AccessWindow {
 public:
  AccessWindow();
  ~AccessWindow();
  AccessWindow(const AccessWindow&) = delete;
  AccessWindow& operator=(const AccessWindow&) = delete;
};

bool is_device_memory(const void* address);
bool is_pinned_memory(const void* address);

// Returns and forgets what went wrong in kernels since the last call; cudaSuccess: nothing.
cudaError_t take_failure();

}  // namespace cuda_emulator
