// A rank's CUDA device: its streams, its memory, and copies between host and device.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime.h>

#include "core/context.h"
#include "core/device/cuda_allocator.h"
#include "core/device/cuda_ring.h"
#include "core/device/joined_launch.h"
#include "core/storage.h"

namespace flow::cuda {

// An invalid value that a kernel found, such as an index out of range. Device code cannot throw: it
// stores the first such value and skips it. The rank's next call that waits for the device throws.
struct Fault {
  int is_set = 0;
  int64_t value = 0;
  int64_t lowest = 0;  // the lowest valid value
  int64_t highest = 0;
  const char* op = nullptr;
};

// One per rank and device. All kernels and copies of a rank run on its compute stream in program
// order; the other streams run concurrent work that events order. Objects are never destroyed
// because tensors may outlive their rank; a new rank reuses those of ended ranks.
class RankDevice {
 public:
  explicit RankDevice(int index);
  RankDevice(const RankDevice&) = delete;
  RankDevice& operator=(const RankDevice&) = delete;

  int index() const { return index_; }

  // For work that is queued at once: what the thread has put off (JoinLaunches) is queued first.
  cudaStream_t compute_stream() const {
    queue_joined();
    return compute_;
  }

  cudaStream_t copy_stream() const { return copy_; }

  cudaStream_t communication_stream() const { return communication_; }

  DeviceAllocator& allocator() { return allocator_; }

  // Queues on the compute stream, after what the thread has put off.
  PinnedRing& ring() {
    queue_joined();
    return ring_;
  }

  // Makes this device the calling thread's current CUDA device.
  void make_current() const;
  // Waits for all streams, then throws if a kernel found an invalid value.
  void synchronize() const;

  // Kernels store a Fault here; it is in pinned host memory.
  Fault* fault() const { return fault_; }

  // Throws InvalidArgument if a finished kernel found an invalid value, and clears it.
  void throw_fault() const;

 private:
  int index_;
  cudaStream_t compute_;
  cudaStream_t copy_;
  cudaStream_t communication_;
  Fault* fault_;
  DeviceAllocator allocator_;
  PinnedRing ring_;
};

// Returns the device of a rank and makes it current on the calling thread. The first call selects
// it: device local_rank modulo the number of devices, unless select_device was called before.
// Throws Unsupported if there is no device.
RankDevice& rank_device(RankContext& rank);

// Work queued later on the stream of `second` waits for the work that is queued on that of `first`
// now. Leaves the thread's current device as it is.
cudaError_t order_work(const DeviceAllocator& first, const DeviceAllocator& second) noexcept;

// Queues a copy of memory of another device to the rank's; null if `source` is already there.
Ref<Storage> copy_of_elsewhere(RankContext& rank, const void* source, size_t bytes);

}  // namespace flow::cuda
