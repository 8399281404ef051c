// Declarations that the emulator's files share.
#pragma once

#include <mutex>

#include "cuda_runtime.h"

namespace cuda_emulator {

// Guards all state of the emulator; the thread that runs a stream's work holds it. Recursive,
// because work may wait for other streams.
std::recursive_mutex& device_mutex();

// Bit d: device d.
using DeviceSet = unsigned;

inline DeviceSet only_device(int device) {
  return 1U << device;
}

// While an object of this class exists, and no later one, the memory of these devices can be read
// and written, and that of the others cannot. Requires device_mutex().
class AccessWindow {
 public:
  explicit AccessWindow(DeviceSet devices);
  ~AccessWindow();
  AccessWindow(const AccessWindow&) = delete;
  AccessWindow& operator=(const AccessWindow&) = delete;

 private:
  DeviceSet outer_;
};

// The device whose memory it is; -1: none.
int device_of(const void* address);
bool is_device_memory(const void* address);
// The devices to whose memory these addresses belong.
DeviceSet devices_of(const void* a, const void* b);
bool is_pinned_memory(const void* address);

// Returns and clears the error that kernels have made since the last call; cudaSuccess: none.
cudaError_t take_failure();

// The error of fail_calls().
cudaError_t failure_of_calls();

// The calling thread's device.
int current();

// A call makes a context on the calling thread's device, which is device 0 until the thread chooses
// one, unless the process has one there.
void use_context(const char* call);

// Runs the work of all streams of a device.
cudaError_t synchronize(int device);

}  // namespace cuda_emulator
