// Caching allocator of host memory, one per rank, with statistics.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace flow {

struct AllocatorStats {
  int64_t bytes_in_use = 0;       // handed out, rounded to size classes
  int64_t peak_bytes_in_use = 0;  // since the last reset_peak()
  int64_t bytes_cached = 0;       // kept for reuse
  int64_t num_allocations = 0;
  int64_t num_cache_hits = 0;
};

// Blocks are 64-byte aligned and come in size classes: multiples of 64 up to 1 KiB, four per power
// of two up to 8 MiB, then sixteen, as large blocks are few and what rounds them up is felt. Freed
// blocks are kept and reused first-in-last-out. Thread safe: any thread may free a block of any
// rank.
class Allocator {
 public:
  Allocator() = default;
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // Throws OutOfMemory naming what was asked for and what is in use. bytes == 0 gives a block.
  void* allocate(size_t bytes);
  // `bytes` as given to allocate.
  void deallocate(void* block, size_t bytes) noexcept;

  AllocatorStats stats() const;
  void reset_peak();
  // Returns cached blocks to the system.
  void release_cached();
  // Refuses allocations that would bring bytes_in_use above `bytes`; for tests and quotas.
  void set_limit(int64_t bytes);

  // What a block of so many bytes counts as, in the statistics too.
  static int64_t block_bytes(int64_t bytes) {
    return static_cast<int64_t>(class_bytes(class_of(static_cast<size_t>(bytes))));
  }

  // An allocator for a new rank. It is never destroyed, as tensors may outlive their rank; those
  // of ended ranks are handed out again.
  static Allocator* acquire();
  static void recycle(Allocator* allocator);

 private:
  static constexpr int kNumClasses = 16 + 4 * 13 + 16 * 26;
  static int class_of(size_t bytes);
  static size_t class_bytes(int size_class);
  void lock() const noexcept;

  void unlock() const noexcept { locked_.store(false, std::memory_order_release); }

  mutable std::atomic<bool> locked_{false};
  // Guarded by locked_. A free block's first word links to the next.
  std::array<void*, kNumClasses> free_{};
  AllocatorStats stats_;
  int64_t limit_ = INT64_MAX;
};

// Statistics of this rank's host memory.
AllocatorStats memory_stats();
void reset_peak_memory_stats();

}  // namespace flow
