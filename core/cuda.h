// CUDA devices as programs see them. In builds without CUDA there are none, and what needs one
// raises Unsupported.
#pragma once

#include <cstdint>
#include <string>

#include "core/allocator.h"

namespace flow::cuda {

// Whether this build has CUDA.
bool is_built();
// Whether this build has CUDA and the machine a usable device.
bool is_available();
int device_count();
// The device of this rank: that of its local rank, modulo their number, unless another was
// selected.
int current_device();
// Chooses this rank's device before its first use; InvalidArgument afterwards, as a rank computes
// on one device.
void set_device(int index);
std::string device_name(int index);

// Waits until the work this rank has queued on its device is done.
void synchronize();

// Of this rank's device memory; see memory_stats() for the host's.
AllocatorStats memory_stats();
void reset_peak_memory_stats();
// Returns cached memory to the device.
void empty_cache();

}  // namespace flow::cuda
