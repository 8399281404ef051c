// The caching allocator of device memory. Each rank has one; it is stream ordered and keeps the
// same statistics as the host's allocator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>

#include <cuda_runtime.h>

#include "core/allocator.h"

namespace flow::cuda {

// It takes segments of the device's memory and divides them into blocks, in the manner of PyTorch's
// CUDACachingAllocator: blocks of at most 1 MiB share segments of 2 MiB, larger ones segments of 20
// MiB, and from 10 MiB on a block has a segment of its own, which a smaller one may take later. The
// rest of a free block is split off if it is at least 512 bytes, or more than 1 MiB in a segment of
// large blocks. A freed block is joined with its free neighbours.
//
// All blocks belong to one stream. A freed block may be handed out again immediately: work that was
// queued on the stream before finishes before the work that the new owner queues. Who uses a block
// on another stream makes this stream wait for that (OthersMemory of core/device/device_memory.h).
//
// With FLOW_CUDA_CACHE=0 it caches nothing: every block is an allocation of the device of just the
// size that was asked for. Thread safe.
class DeviceAllocator {
 public:
  // `release_others` empties the caches of others that use the device. It is called when there is
  // no room, without a lock.
  DeviceAllocator(int device, cudaStream_t stream, std::function<void()> release_others = {});

  DeviceAllocator(const DeviceAllocator&) = delete;
  DeviceAllocator& operator=(const DeviceAllocator&) = delete;

  int device() const { return device_; }

  cudaStream_t stream() const { return stream_; }

  // The block is 512-byte aligned. If neither the cache nor the device has room, it empties its own
  // cache, then those of the others, and at last throws OutOfMemory with the statistics. Requires:
  // the device is the thread's current one.
  void* allocate(size_t bytes);
  // Requires: `bytes` is the number that was passed to allocate().
  void deallocate(void* block, size_t bytes) noexcept;

  // Of blocks in use and cached the statistics count the whole size, which for a large block may be
  // up to 1 MiB more than was asked for.
  AllocatorStats stats() const;
  void reset_peak();
  // The beginning of the segment to which `memory` belongs. It is kept for ever from now on,
  // because other processes may have it open. Null: there is none, or nothing is cached.
  std::byte* share_segment(const void* memory);
  // Returns the segments of which all is free to the device, after the work that used them.
  void release_cached();
  // Makes allocations fail that would raise bytes_in_use above `bytes`.
  void set_limit(int64_t bytes);

 private:
  struct Block;

  // By size, then by address.
  struct BySize {
    using is_transparent = void;
    bool operator()(const Block* a, const Block* b) const;
    bool operator()(const Block* a, size_t size) const;
  };

  using FreeBlocks = std::set<Block*, BySize>;

  struct Block {
    std::byte* begin = nullptr;
    size_t size = 0;
    bool is_large = false;
    Block* before = nullptr;  // neighbours in the segment
    Block* after = nullptr;
    // While the block is in use: its place among the free ones, so that freeing takes no memory.
    FreeBlocks::node_type place;

    bool is_free() const { return place.empty(); }

    bool is_segment() const { return before == nullptr && after == nullptr; }
  };

  struct Segment {
    size_t size = 0;
    bool is_shared = false;
  };

  FreeBlocks& free_blocks(bool are_large) { return free_[are_large ? 1 : 0]; }

  Block& add_block(std::byte* begin, size_t size, bool is_large);
  void remove_block(Block& block) noexcept;
  Block* take_free(size_t size);
  Block* take_new(size_t size);
  static void* take_segment(size_t bytes);
  void split(Block& block, size_t size);
  void join(Block& block, Block& after) noexcept;
  void* take(size_t bytes);
  void count_allocated(size_t size);
  void check_limit(size_t bytes) const;
  [[noreturn]] void fail(size_t bytes) const;

  const int device_;
  const cudaStream_t stream_;
  const bool caches_;
  const std::function<void()> release_others_;
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::unordered_map<void*, std::unique_ptr<Block>> blocks_;  // by their beginning
  std::map<const std::byte*, Segment> segments_;              // by their beginning
  FreeBlocks free_[2];                                        // small, large
  AllocatorStats stats_;
  int64_t limit_ = INT64_MAX;
};

}  // namespace flow::cuda
