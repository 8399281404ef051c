// Memory operations that work for every device type.
#pragma once

#include <cstddef>
#include <string_view>

#include "core/device.h"
#include "core/kernel.h"
#include "core/storage.h"

namespace flow {

class RankContext;

// Returns uninitialised bytes in host memory or on the rank's CUDA device. Throws OutOfMemory, or
// Unsupported for cuda if there is no device.
Ref<Storage> allocate_storage(RankContext& rank, DeviceType device, size_t bytes);

// Returns host memory that CUDA copies to and from directly (pinned); plain host memory in builds
// without CUDA. Requires: work that uses the memory has finished before it is freed.
Ref<Storage> allocate_staging(RankContext& rank, size_t bytes);

// Copies after the work that the rank has queued before. Returns when `source` may be changed and,
// if `target` is host memory, when `target` holds the bytes.
void copy_bytes(RankContext& rank, void* target, DeviceType target_device, const void* source,
                DeviceType source_device, size_t bytes);

// Accepts "cpu", "cuda", "gpu" and a numbered device such as "cuda:1". A number selects the rank's
// device if the rank has not used one yet (cuda::set_device). Throws InvalidArgument for any other
// text, and if the number is not that of the rank's device.
DeviceType use_device(std::string_view name);

// The number of elements from the first to the last element of this rank's part in memory.
int64_t extent_of(const TensorMeta& meta);

// A copy in host memory of this rank's part, including the memory between its elements.
Ref<Storage> host_copy(RankContext& rank, const TensorView& view);

// Calls `kernel`, a kernel for host memory, with host copies of the call's operands that are on a
// device.
void run_on_host(const KernelContext& ctx, KernelFn kernel);

// Blocks until the work that the rank has queued on `device` is done; does nothing for the host.
void synchronize_device(RankContext& rank, DeviceType device);

}  // namespace flow
