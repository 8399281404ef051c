#include "core/allocator.h"

#include <bit>
#include <cstdlib>
#include <mutex>
#include <thread>

#include <sys/mman.h>

#include "core/context.h"
#include "core/error.h"

namespace flow {

namespace {
constexpr size_t kAlignment = 64;
// Blocks from this size on are mapped at huge-page alignment and given back whole.
constexpr size_t kHugeBytes = size_t{4} << 20;

void* system_allocate(size_t bytes) {
  const size_t alignment = bytes >= kHugeBytes ? size_t{2} << 20 : kAlignment;
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* block = std::aligned_alloc(alignment, rounded);
  if (block != nullptr && bytes >= kHugeBytes) madvise(block, rounded, MADV_HUGEPAGE);
  return block;
}
}  // namespace

int Allocator::class_of(size_t bytes) {
  if (bytes <= 1024) return bytes == 0 ? 0 : static_cast<int>((bytes - 1) / 64);
  // Four classes per power of two: 1280, 1536, 1792, 2048, 2560, …
  const size_t last = bytes - 1;
  const int exponent = static_cast<int>(std::bit_width(last)) - 1;  // >= 10
  const int quarter = static_cast<int>(last >> (exponent - 2)) & 3;
  return 16 + 4 * (exponent - 10) + quarter;
}

size_t Allocator::class_bytes(int size_class) {
  if (size_class < 16) return static_cast<size_t>(size_class + 1) * 64;
  const int exponent = (size_class - 16) / 4 + 10;
  const size_t quarter = static_cast<size_t>((size_class - 16) % 4 + 1);
  return (size_t{1} << exponent) + quarter * (size_t{1} << (exponent - 2));
}

void Allocator::lock() const noexcept {
  while (locked_.exchange(true, std::memory_order_acquire)) {
    for (int i = 0; i < 64 && locked_.load(std::memory_order_relaxed); ++i) {
    }
    if (locked_.load(std::memory_order_relaxed)) std::this_thread::yield();
  }
}

void* Allocator::allocate(size_t bytes) {
  const int size_class = class_of(bytes);
  const auto size = static_cast<int64_t>(class_bytes(size_class));
  lock();
  if (stats_.bytes_in_use + size > limit_) {
    const int64_t in_use = stats_.bytes_in_use;
    unlock();
    throw OutOfMemory(str("[allocator] asked for ", bytes, " bytes with ", in_use,
                          " bytes in use and a limit of ", limit_, "; free tensors or raise it"));
  }
  ++stats_.num_allocations;
  void* block = free_[static_cast<size_t>(size_class)];
  if (block != nullptr) {
    free_[static_cast<size_t>(size_class)] = *static_cast<void**>(block);
    ++stats_.num_cache_hits;
    stats_.bytes_cached -= size;
  }
  stats_.bytes_in_use += size;
  if (stats_.bytes_in_use > stats_.peak_bytes_in_use)
    stats_.peak_bytes_in_use = stats_.bytes_in_use;
  unlock();
  if (block == nullptr) block = system_allocate(static_cast<size_t>(size));
  if (block == nullptr) {
    release_cached();
    block = system_allocate(static_cast<size_t>(size));
  }
  if (block == nullptr) {
    lock();
    stats_.bytes_in_use -= size;
    const int64_t in_use = stats_.bytes_in_use;
    unlock();
    throw OutOfMemory(str("[allocator] the system gave no ", bytes, " bytes; ", in_use,
                          " bytes are in use; use smaller batches or fewer saved tensors"));
  }
  return block;
}

void Allocator::deallocate(void* block, size_t bytes) noexcept {
  const int size_class = class_of(bytes);
  const auto size = static_cast<int64_t>(class_bytes(size_class));
  lock();
  *static_cast<void**>(block) = free_[static_cast<size_t>(size_class)];
  free_[static_cast<size_t>(size_class)] = block;
  stats_.bytes_in_use -= size;
  stats_.bytes_cached += size;
  unlock();
}

AllocatorStats Allocator::stats() const {
  lock();
  const AllocatorStats copy = stats_;
  unlock();
  return copy;
}

void Allocator::reset_peak() {
  lock();
  stats_.peak_bytes_in_use = stats_.bytes_in_use;
  unlock();
}

void Allocator::release_cached() {
  lock();
  const auto lists = free_;
  free_.fill(nullptr);
  stats_.bytes_cached = 0;
  unlock();
  for (void* block : lists) {
    while (block != nullptr) {
      void* next = *static_cast<void**>(block);
      std::free(block);
      block = next;
    }
  }
}

void Allocator::set_limit(int64_t bytes) {
  lock();
  limit_ = bytes;
  unlock();
}

namespace {
struct Registry {
  std::mutex mutex;
  std::vector<Allocator*> idle;
};

Registry& registry() {
  static Registry& instance = *new Registry;  // immortal, as its allocators are
  return instance;
}
}  // namespace

Allocator* Allocator::acquire() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  if (all.idle.empty()) return new Allocator;
  Allocator* allocator = all.idle.back();
  all.idle.pop_back();
  return allocator;
}

void Allocator::recycle(Allocator* allocator) {
  allocator->set_limit(INT64_MAX);
  allocator->reset_peak();
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.idle.push_back(allocator);
}

AllocatorStats memory_stats() {
  return thread_state().context->allocator().stats();
}

void reset_peak_memory_stats() {
  thread_state().context->allocator().reset_peak();
}

}  // namespace flow
