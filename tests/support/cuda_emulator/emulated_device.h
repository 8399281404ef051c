// Declarations that the emulator's files share.
#pragma once

#include <mutex>

#include "cuda_runtime.h"

namespace cuda_emulator {

// Guards all state of the emulator; the thread that runs a stream's work holds it. Recursive,
// because work may wait for other streams.
std::recursive_mutex& device_mutex();

// While an object of this class exists, device memory can be read and written. Requires
// device_mutex().
class AccessWindow {
 public:
  AccessWindow();
  ~AccessWindow();
  AccessWindow(const AccessWindow&) = delete;
  AccessWindow& operator=(const AccessWindow&) = delete;
};

bool is_device_memory(const void* address);
bool is_pinned_memory(const void* address);

// Returns and clears the error that kernels have made since the last call; cudaSuccess: none.
cudaError_t take_failure();

}  // namespace cuda_emulator
