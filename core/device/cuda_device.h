// A rank's CUDA device: its streams, its memory, and copies between host and device.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

#include <cuda_runtime.h>

#include "core/context.h"
#include "core/device/cuda_allocator.h"
#include "core/device/cuda_ring.h"
#include "core/device/joined_launch.h"
#include "core/storage.h"

namespace flow {
class CaptureMemory;
}

namespace flow::cuda {

// What the calling thread captures (core/device/device_graph.h): the stream and the memory of the
// capture; null: it captures nothing.
cudaStream_t captured_stream() noexcept;
CaptureMemory* capture_memory() noexcept;
// Throws Error if the calling thread captures, because a graph cannot contain `what`, such as "the
// host waits for the device".
void refuse_in_capture(const char* what);

// Makes a device the calling thread's current one. Must come before the first other call of CUDA on
// each thread: CUDA makes a context on the thread's device, which is device 0 until then.
cudaError_t set_current(int device) noexcept;

// While one lives, its device is the calling thread's current one: for what frees objects of CUDA,
// which may happen on any thread. The thread that has chosen no device before keeps this one.
class [[nodiscard]] OnDevice {
 public:
  // Logs a failure.
  explicit OnDevice(int device) noexcept;
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int outer_;  // -1: none
};

// An invalid value that a kernel found, such as an index out of range. Device code cannot throw: it
// stores the first such value and skips it. The rank's next call that waits for the device throws.
struct Fault {
  static constexpr int kBeingWritten = 1, kWhole = 2;
  int state = 0;  // 0: none
  int64_t value = 0;
  int64_t lowest = 0;  // the lowest valid value
  int64_t highest = 0;
  const char* op = nullptr;
};

// While one lives, what the calling thread queues on its rank's device goes to the communication
// stream, and memory that it takes there belongs to that stream. Nothing orders this stream with
// the compute stream: the caller does, at both ends (boxing/comm/device_copy.h).
class [[nodiscard]] OnCommunicationStream {
 public:
  OnCommunicationStream();
  ~OnCommunicationStream();
  OnCommunicationStream(const OnCommunicationStream&) = delete;
  OnCommunicationStream& operator=(const OnCommunicationStream&) = delete;

 private:
  bool outer_;
};

// One per rank and device. The kernels and copies that a rank's own thread queues run on the
// compute stream in program order. Those of its communication thread run on the communication
// stream, and messages from device to device on the copy stream; events order the streams. Objects
// are never destroyed because tensors may outlive their rank; a new rank reuses those of ended
// ranks.
class RankDevice {
 public:
  explicit RankDevice(int index);
  RankDevice(const RankDevice&) = delete;
  RankDevice& operator=(const RankDevice&) = delete;

  int index() const { return index_; }

  // The stream on which the calling thread queues: the compute stream, the communication stream in
  // OnCommunicationStream, or in a capture the one that is captured. For work that is queued at
  // once: what the thread has put off (JoinLaunches) is queued first.
  cudaStream_t stream() const {
    queue_joined();
    const cudaStream_t captured = captured_stream();
    return captured == nullptr ? here().stream : captured;
  }

  cudaStream_t compute_stream() const {
    queue_joined();
    return compute_.stream;
  }

  cudaStream_t copy_stream() const { return copy_; }

  cudaStream_t communication_stream() const { return communication_.stream; }

  // The memory of stream().
  DeviceAllocator& allocator() { return here().allocator; }

  // Whether the memory is of one of this device's streams, and of the compute stream.
  bool owns(const DeviceAllocator* owner) const {
    return owner == &compute_.allocator || owner == &communication_.allocator;
  }

  bool is_of_compute_stream(const DeviceAllocator* owner) const {
    return owner == &compute_.allocator;
  }

  // Queues on stream(), after what the thread has put off. Its pieces are used again, so captured
  // work must not read them.
  PinnedRing& ring() {
    refuse_in_capture("numbers are copied between the host and the device");
    queue_joined();
    return here().ring;
  }

  // The beginning of the allocation of the device to which `memory` of this rank belongs, which
  // other processes may open from now on (cudaIpcGetMemHandle): it is not freed any more. Null: it
  // cannot be shared.
  std::byte* share_allocation(const void* memory);

  // Of the memory of all streams; peaks are added.
  AllocatorStats memory_stats() const;
  void reset_peak_memory();
  void release_cached_memory();

  // Makes this device the calling thread's current CUDA device.
  void make_current() const;
  // Waits for all streams, then throws if a kernel found an invalid value.
  void synchronize() const;

  // Kernels store a Fault here; it is in pinned host memory.
  Fault* fault() const { return fault_; }

  // Throws InvalidArgument if a finished kernel found an invalid value, and clears it. Throws
  // before that what lose_results() was told to.
  void throw_fault() const;
  // The results of queued work are meaningless from now on, because a communicator is aborted. On
  // any thread. The next throw_fault() calls `explain`, which throws why, or returns where the rank
  // knows.
  void lose_results(std::function<void()> explain);
  // For the rank's end: waits for all work, frees pinned memory and forgets limits and faults. The
  // device is then the calling thread's current one, as the rank's handles of libraries need it:
  // they end after this, and on another thread than that of the rank.
  void end_rank() noexcept;

 private:
  // A stream on which kernels run, with what belongs to it.
  struct Queue {
    cudaStream_t stream;
    DeviceAllocator allocator;
    PinnedRing ring;

    Queue(RankDevice& device, cudaStream_t of);
  };

  static bool is_on_communication_stream();

  const Queue& here() const { return is_on_communication_stream() ? communication_ : compute_; }

  Queue& here() { return const_cast<Queue&>(std::as_const(*this).here()); }

  void throw_loss() const;

  int index_;
  cudaStream_t copy_;
  Fault* fault_;
  Queue compute_;
  Queue communication_;
  mutable std::atomic<bool> has_lost_results_ = false;
  mutable std::mutex loss_mutex_;
  mutable std::function<void()> explain_loss_;  // guarded by loss_mutex_
};

// Returns the device of a rank and makes it current on the calling thread. The first call selects
// it: device local_rank modulo the number of devices, unless select_device was called before.
// Throws Unsupported if there is no device.
RankDevice& rank_device(RankContext& rank);

// The UUID of the rank's device: it tells devices apart on any hosts, in containers, and as slices
// of a GPU. CUDA takes a long time to answer, so it is asked once for each rank.
const std::array<char, 16>& device_uuid(RankContext& rank);

// Work queued later on the stream of `second` waits for the work that is queued on that of `first`
// now. Leaves the thread's current device as it is.
cudaError_t order_work(const DeviceAllocator& first, const DeviceAllocator& second) noexcept;

// Queues a copy of memory of another device to the rank's; null if `source` is already there.
Ref<Storage> copy_of_elsewhere(RankContext& rank, const void* source, size_t bytes);

}  // namespace flow::cuda
