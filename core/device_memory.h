// Memory of any device type, for code that serves all of them.
#pragma once

#include <cstddef>

#include "core/device.h"
#include "core/storage.h"

namespace flow {

class RankContext;

// Uninitialised bytes on `device`: host memory, or that of the rank's CUDA device. Throws
// OutOfMemory, and Unsupported for cuda where there is none.
Ref<Storage> allocate_storage(RankContext& rank, DeviceType device, size_t bytes);

// Host memory that CUDA copies to and from without a detour; plain host memory in builds without
// CUDA. What uses it must have ended when it is freed.
Ref<Storage> allocate_staging(RankContext& rank, size_t bytes);

// Copies after what the rank has queued before. Returns when `source` may be changed and, where
// `target` is host memory, holds the bytes.
void copy_bytes(RankContext& rank, void* target, DeviceType target_device, const void* source,
                DeviceType source_device, size_t bytes);

// Waits for what the rank has queued on `device`; nothing to do for the host.
void synchronize_device(RankContext& rank, DeviceType device);

}  // namespace flow
