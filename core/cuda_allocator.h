// Caching allocator of device memory: one per rank, stream ordered, with the statistics of the
// host's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include <cuda_runtime.h>

#include "core/allocator.h"

namespace flow::cuda {

// Blocks belong to one stream: a block that is freed may be handed out again at once, as what was
// queued before on the stream ends before what its new owner queues. Work on another stream has to
// be named with record_use. Small blocks are cut from slabs. Thread safe.
class DeviceAllocator {
 public:
  DeviceAllocator(int device, cudaStream_t stream) : device_(device), stream_(stream) {}

  DeviceAllocator(const DeviceAllocator&) = delete;
  DeviceAllocator& operator=(const DeviceAllocator&) = delete;

  // 512-byte aligned. Throws OutOfMemory with the statistics when neither the device nor the
  // cache has room.
  void* allocate(size_t bytes);
  // `bytes` as given to allocate.
  void deallocate(void* block, size_t bytes) noexcept;
  // `block` is read or written on `stream` by what was queued there up to now: once freed, it is
  // not handed out again before that has ended.
  void record_use(void* block, cudaStream_t stream);

  AllocatorStats stats() const;
  void reset_peak();
  // Waits for the device, then returns cached blocks to it (slabs stay).
  void release_cached();
  // Refuses allocations that would bring bytes_in_use above `bytes`.
  void set_limit(int64_t bytes);

  // What `bytes` take: multiples of 512 up to 4 KiB, then four sizes per power of two.
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
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::map<size_t, std::vector<void*>> free_;                 // by size
  std::map<void*, std::vector<cudaStream_t>> other_streams_;  // of blocks in use
  std::vector<Busy> busy_;                                    // freed, in use on other streams
  std::byte* slab_ = nullptr;                                 // what is left of the newest slab
  size_t slab_left_ = 0;
  AllocatorStats stats_;
  int64_t limit_ = INT64_MAX;
};

}  // namespace flow::cuda
