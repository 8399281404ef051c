// A rank's part of a CUDA device: its streams, its memory and how bytes get there and back.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime.h>

#include "core/context.h"
#include "core/cuda_allocator.h"

namespace flow::cuda {

// What a kernel found wrong with a value, such as an index out of range. Device code cannot throw:
// it notes the first such value and goes on without it; the next call of the rank that waits for
// the device throws.
struct Fault {
  int is_set = 0;
  int64_t value = 0;
  int64_t lowest = 0;  // what is right
  int64_t highest = 0;
  const char* op = nullptr;
};

// One per rank and device. All kernels and copies of a rank run on its compute stream, in program
// order; the others are for work beside it, ordered by events. Never destroyed, as tensors may
// outlive their rank; those of ended ranks are handed out again.
class RankDevice {
 public:
  explicit RankDevice(int index);
  RankDevice(const RankDevice&) = delete;
  RankDevice& operator=(const RankDevice&) = delete;

  int index() const { return index_; }

  cudaStream_t compute_stream() const { return compute_; }

  cudaStream_t copy_stream() const { return copy_; }

  cudaStream_t communication_stream() const { return communication_; }

  DeviceAllocator& allocator() { return allocator_; }

  // Makes the device the calling thread's current one.
  void make_current() const;
  // Waits for all streams; throws what kernels found wrong.
  void synchronize() const;

  // Where kernels note it: pinned host memory.
  Fault* fault() const { return fault_; }

  // Throws InvalidArgument, once, if a kernel that has ended found a value wrong.
  void throw_fault() const;

 private:
  int index_;
  cudaStream_t compute_;
  cudaStream_t copy_;
  cudaStream_t communication_;
  Fault* fault_;
  DeviceAllocator allocator_;
};

// The device of a rank, current on the calling thread. The first call chooses it: device
// local_rank modulo the number of devices, unless select_device came before. Throws Unsupported
// where there is none.
RankDevice& rank_device(RankContext& rank);

// Later work on `second` waits for what is queued on `first` now.
void order_streams(cudaStream_t first, cudaStream_t second);

}  // namespace flow::cuda
