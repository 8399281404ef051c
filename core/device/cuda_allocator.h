// The caching allocator of device memory. Each rank has one; it is stream ordered and keeps the
// same statistics as the host's allocator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include <cuda_runtime.h>

#include "core/allocator.h"

namespace flow::cuda {

// With FLOW_CUDA_CACHE=0 it caches nothing: every block is an allocation of the device of just the
// size that was asked for.
//
// All blocks belong to one stream. A freed block may be handed out again immediately: work that was
// queued on the stream before finishes before the work that the new owner queues. record_use()
// announces work on any other stream. Small blocks are cut from slabs. Thread safe.
class DeviceAllocator {
 public:
  DeviceAllocator(int device, cudaStream_t stream);

  DeviceAllocator(const DeviceAllocator&) = delete;
  DeviceAllocator& operator=(const DeviceAllocator&) = delete;

  // The block is 512-byte aligned. Throws OutOfMemory with the statistics if neither the device nor
  // the cache has room.
  void* allocate(size_t bytes);
  // Requires: `bytes` is the number that was passed to allocate().
  void deallocate(void* block, size_t bytes) noexcept;
  // Announces that work queued on `stream` so far reads or writes `block`. After the block is freed
  // it is not handed out again before that work has finished.
  void record_use(void* block, cudaStream_t stream);

  AllocatorStats stats() const;
  void reset_peak();
  // Waits for the device, then returns cached blocks to it. Slabs are kept.
  void release_cached();
  // Makes allocations fail that would raise bytes_in_use above `bytes`.
  void set_limit(int64_t bytes);

  // The size of the block that holds `bytes`: a multiple of 512 up to 4 KiB, then one of four sizes
  // per power of two.
  static size_t rounded(size_t bytes);

 private:
  struct Busy {
    void* block;
    size_t size;
    std::vector<cudaEvent_t> ends;
  };

  void* take(size_t size);
  void* from_device(size_t size);
  void collect_finished();
  [[noreturn]] void fail(size_t bytes) const;

  const int device_;
  const cudaStream_t stream_;
  const bool caches_;
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::map<size_t, std::vector<void*>> free_;                 // by size
  std::map<void*, std::vector<cudaStream_t>> other_streams_;  // of blocks in use
  std::vector<Busy> busy_;     // freed but still in use on other streams
  std::byte* slab_ = nullptr;  // the unused rest of the newest slab
  size_t slab_left_ = 0;
  AllocatorStats stats_;
  int64_t limit_ = INT64_MAX;
};

}  // namespace flow::cuda
