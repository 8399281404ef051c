// The caching allocator of host memory. Each rank has one; it keeps statistics.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace flow {

struct AllocatorStats {
  int64_t bytes_in_use = 0;       // handed out, rounded up to block sizes
  int64_t peak_bytes_in_use = 0;  // since the last reset_peak()
  int64_t bytes_cached = 0;       // freed blocks kept for reuse
  int64_t num_allocations = 0;
  int64_t num_cache_hits = 0;
};

// Hands out 64-byte aligned blocks in size classes: multiples of 64 bytes up to 1 KiB, then four
// classes per power of two up to 8 MiB, then sixteen. Large blocks get finer classes because they
// are few and rounding them up wastes much memory. Each class keeps its freed blocks and reuses the
// one freed last. When a new block is needed and much more is kept than was ever in use at once,
// the blocks of classes that have not been used lately are returned to the system first. Thread
// safe: any thread may free a block of any rank.
class Allocator {
 public:
  Allocator() = default;
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // Throws OutOfMemory, which names the bytes requested and the bytes in use. bytes == 0 also
  // returns a block.
  void* allocate(size_t bytes);
  // Requires: `bytes` is the number that was passed to allocate().
  void deallocate(void* block, size_t bytes) noexcept;

  AllocatorStats stats() const;
  void reset_peak();
  // Returns the cached blocks to the system.
  void release_cached();
  // Makes allocations fail that would raise bytes_in_use above `bytes`; for tests and quotas.
  void set_limit(int64_t bytes);

  // The size of the block that holds `bytes`; the statistics count this size.
  static int64_t block_bytes(int64_t bytes) {
    return static_cast<int64_t>(class_bytes(class_of(static_cast<size_t>(bytes))));
  }

  // Returns an allocator for a new rank. Allocators are never destroyed because tensors may outlive
  // their rank; recycle() keeps the allocator of an ended rank for the next acquire().
  static Allocator* acquire();
  static void recycle(Allocator* allocator);

 private:
  static constexpr int kNumClasses = 16 + 4 * 13 + 16 * 26;
  static int class_of(size_t bytes);
  static size_t class_bytes(int size_class);
  void lock() const noexcept;

  void unlock() const noexcept { locked_.store(false, std::memory_order_release); }

  mutable std::atomic<bool> locked_{false};
  // Guarded by locked_. The first word of a free block points to the next free block.
  std::array<void*, kNumClasses> free_{};
  AllocatorStats stats_;
  int64_t limit_ = INT64_MAX;
};

// Statistics of this rank's host memory.
AllocatorStats memory_stats();
void reset_peak_memory_stats();

}  // namespace flow
