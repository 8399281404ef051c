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

// Copies after what the rank has queued before. Returns when `source` may be changed and, where
// `target` is host memory, holds the bytes.
void copy_bytes(RankContext& rank, void* target, DeviceType target_device, const void* source,
                DeviceType source_device, size_t bytes);

// "cpu", "cuda", "gpu", and "cuda:1": the rank's device, selected by that if none was used yet
// (cuda::set_device). Throws InvalidArgument for other words and for another device than the
// rank's.
DeviceType use_device(std::string_view name);

// Elements from the first to the last of this rank's part in memory.
int64_t extent_of(const TensorMeta& meta);

// The elements of this rank's part with all that lies between them, in host memory.
Ref<Storage> host_copy(RankContext& rank, const TensorView& view);

// Calls `kernel`, which is for host memory, with copies of the call's operands that lie on a
// device.
void run_on_host(const KernelContext& ctx, KernelFn kernel);

// Waits for what the rank has queued on `device`; nothing to do for the host.
void synchronize_device(RankContext& rank, DeviceType device);

}  // namespace flow
