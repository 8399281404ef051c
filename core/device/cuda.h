// CUDA devices as programs see them. A build without CUDA reports no devices, and a call that needs
// one throws Unsupported.
#pragma once

#include <cstdint>
#include <string>

#include "core/allocator.h"

namespace flow::cuda {

// True if this build supports CUDA.
bool is_built();
// True if this build supports CUDA and the machine has a usable device.
bool is_available();
int device_count();
// The index of this rank's device: the local rank modulo the number of devices, unless set_device()
// selected another.
int current_device();
// Selects this rank's device. Must be called before the rank first uses CUDA; throws
// InvalidArgument afterwards, because a rank computes on one device only.
void set_device(int index);
std::string device_name(int index);

// Blocks until all work that this rank queued on its device has finished.
void synchronize();

// Statistics of this rank's device memory; flow::memory_stats() reports host memory.
AllocatorStats memory_stats();
void reset_peak_memory_stats();
// Returns cached memory to the device.
void empty_cache();

}  // namespace flow::cuda
