#include "core/allocator.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "core/context.h"
#include "core/device/sanitizer.h"
#include "core/error.h"
#include "core/kernel_scratch.h"

namespace flow {

namespace {
constexpr size_t kAlignment = 64;
// Above 1 KiB a class has room for a round number of bytes and a storage header, because tensors
// whose size is a power of two are the most common.
constexpr size_t kHeaderRoom = 64;
// Classes 0 to 15 are multiples of 64 bytes. From kFirstClass on there are four classes per power
// of two, starting at 2^10; from kFirstFineClass on sixteen, starting at 2^kFineExponent.
constexpr int kFirstClass = 16;
constexpr int kFineExponent = 23;
constexpr int kFirstFineClass = kFirstClass + 4 * (kFineExponent - 10);
constexpr size_t kHugePage = size_t{2} << 20;
// Blocks above this size are mapped with huge-page alignment and returned to the system whole.
constexpr size_t kLargestShared = (size_t{8} << 20) + kHeaderRoom;
// Blocks of at least this size share regions of huge pages. With the address sanitizer no blocks
// share a region, because it detects overruns only of separate blocks.
constexpr size_t kLeastShared = kChecksAddresses ? kLargestShared + 1 : size_t{64} << 10;
constexpr size_t kMaxRegion = size_t{32} << 20;
constexpr int64_t kAlwaysKept = int64_t{64} << 20;
// A class is in use while one of its blocks was freed within this number of allocations, which is
// more than most steps of training make.
constexpr int64_t kRecent = 2000;

size_t round_up(size_t bytes, size_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

size_t whole_pages(size_t bytes) {
  static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return round_up(bytes, page);
}

// The rest that does not fill a huge page is in small pages. The memory is mapped, because malloc
// would keep much of what is freed: it takes large blocks from its heap too once one was freed, and
// aligned ones of different sizes leave gaps there. The address sanitizer knows malloc's blocks
// only.
void* map_huge(size_t bytes) {
  const size_t size = whole_pages(bytes);
  void* block = nullptr;
  if (kChecksAddresses) {
    if (posix_memalign(&block, kHugePage, size) != 0) return nullptr;
  } else {
    void* mapped =
        mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return nullptr;
    const size_t before = -reinterpret_cast<uintptr_t>(mapped) % kHugePage;
    block = static_cast<std::byte*>(mapped) + before;
    if (before > 0) munmap(mapped, before);
    if (before < kHugePage) munmap(static_cast<std::byte*>(block) + size, kHugePage - before);
  }
  madvise(block, size, MADV_HUGEPAGE);
  return block;
}

void unmap_huge(void* block, size_t bytes) {
  if (kChecksAddresses) {
    std::free(block);
  } else {
    munmap(block, whole_pages(bytes));
  }
}

// Divides regions of huge pages into blocks: translating the addresses of small pages takes longer
// than reading them from the third-level cache. A region is returned to the system when all its
// blocks are free.
class SharedRegions {
 public:
  void* allocate(size_t bytes) {
    const std::lock_guard lock(mutex_);
    std::vector<std::byte*>& free = free_[bytes];
    if (free.empty()) return cut(bytes);
    std::byte* block = free.back();
    free.pop_back();
    region_of(block).used += bytes;
    return block;
  }

  void deallocate(void* block, size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto at = static_cast<std::byte*>(block);
    Region& region = region_of(at);
    region.used -= bytes;
    if (region.used > 0) {
      free_[bytes].push_back(at);
      return;
    }
    const std::byte* end = region.first + region.size;
    for (auto& [size, blocks] : free_)
      std::erase_if(blocks, [&](const std::byte* b) { return b >= region.first && b < end; });
    total_ -= region.size;
    unmap_huge(region.first, region.size);
    std::erase_if(regions_, [](const Region& r) { return r.used == 0; });
  }

 private:
  struct Region {
    std::byte* first;
    size_t size;
    size_t cut = 0;   // divided into blocks
    size_t used = 0;  // by blocks that are handed out

    void* next(size_t bytes) {
      std::byte* block = first + cut;
      cut += bytes;
      used += bytes;
      return block;
    }
  };

  Region& region_of(const std::byte* block) {
    return *std::find_if(regions_.begin(), regions_.end(), [&](const Region& r) {
      return block >= r.first && block < r.first + r.size;
    });
  }

  // Returns a block of the first region with room for it, or of a new region. New regions are
  // larger the more memory is in use.
  void* cut(size_t bytes) {
    for (Region& region : regions_) {
      if (region.size - region.cut >= bytes) return region.next(bytes);
    }
    const size_t size = round_up(std::max(bytes, std::min(total_ / 4, kMaxRegion)), kHugePage);
    auto* first = static_cast<std::byte*>(map_huge(size));
    if (first == nullptr) return nullptr;
    total_ += size;
    regions_.push_back({first, size});
    return regions_.back().next(bytes);
  }

  std::mutex mutex_;
  std::vector<Region> regions_;
  std::map<size_t, std::vector<std::byte*>> free_;  // by the size of their blocks
  size_t total_ = 0;
};

SharedRegions& shared_regions() {
  static SharedRegions& instance = *new SharedRegions;  // never destroyed, as the allocators
  return instance;
}

bool is_shared(size_t bytes) {
  return bytes >= kLeastShared && bytes <= kLargestShared;
}

void* system_allocate(size_t bytes) {
  if (is_shared(bytes)) return shared_regions().allocate(bytes);
  if (bytes > kLargestShared) return map_huge(bytes);
  return std::aligned_alloc(kAlignment, round_up(bytes, kAlignment));
}

void system_free(void* block, size_t bytes) {
  if (is_shared(bytes)) {
    shared_regions().deallocate(block, bytes);
  } else if (bytes > kLargestShared) {
    unmap_huge(block, bytes);
  } else {
    std::free(block);
  }
}

// The begin of a block that is free.
struct FreeBlock {
  void* next;        // of the same class
  int64_t freed_at;  // the number of allocations then
};

// Returns free blocks, all of one class, to the system; their number of bytes.
int64_t release(void* first, size_t bytes_of_one) {
  int64_t bytes = 0;
  while (first != nullptr) {
    void* next = static_cast<FreeBlock*>(first)->next;
    system_free(first, bytes_of_one);
    bytes += static_cast<int64_t>(bytes_of_one);
    first = next;
  }
  return bytes;
}

// Each class keeps its blocks, so a program whose sizes change, such as with the length of each
// batch, would keep more and more.
bool keeps_too_much(const AllocatorStats& stats) {
  return stats.bytes_in_use + stats.bytes_cached > 2 * stats.peak_bytes_in_use + kAlwaysKept;
}

// The class with free blocks that was not in use for longest; -1 if all are in use.
template <size_t kCount>
int unused_class(const std::array<void*, kCount>& free, int64_t num_allocations) {
  int oldest = -1;
  int64_t freed_at = num_allocations - kRecent;
  for (size_t i = 0; i < kCount; ++i) {
    const auto* first = static_cast<const FreeBlock*>(free[i]);  // the one that was freed last
    if (first == nullptr || first->freed_at >= freed_at) continue;
    oldest = static_cast<int>(i);
    freed_at = first->freed_at;
  }
  return oldest;
}
}  // namespace

int Allocator::class_of(size_t bytes) {
  if (bytes <= 1024) return bytes == 0 ? 0 : static_cast<int>((bytes - 1) / 64);
  // Four classes per power of two, each with room for the header: 1280, 1536, 1792, 2048, 2560, …
  const size_t last = std::max<size_t>(bytes - kHeaderRoom - 1, 1024);
  const int exponent = static_cast<int>(std::bit_width(last)) - 1;  // >= 10
  if (exponent < kFineExponent)
    return kFirstClass + 4 * (exponent - 10) + (static_cast<int>(last >> (exponent - 2)) & 3);
  return kFirstFineClass + 16 * (exponent - kFineExponent) +
         (static_cast<int>(last >> (exponent - 4)) & 15);
}

size_t Allocator::class_bytes(int size_class) {
  if (size_class < kFirstClass) return static_cast<size_t>(size_class + 1) * 64;
  const bool fine = size_class >= kFirstFineClass;
  const int first = fine ? kFirstFineClass : kFirstClass;
  const int bits = fine ? 4 : 2;  // of the size, below its highest bit
  const int exponent = ((size_class - first) >> bits) + (fine ? kFineExponent : 10);
  const int part = (size_class - first) & ((1 << bits) - 1);
  return (size_t{1} << exponent) +
         (static_cast<size_t>(part) + 1) * (size_t{1} << (exponent - bits)) + kHeaderRoom;
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
  if (size_class >= kNumClasses) {
    throw OutOfMemory(
        str("[allocator] the request is larger than the memory of any machine; received ", bytes,
            " bytes; use smaller tensors"));
  }
  const auto size = static_cast<int64_t>(class_bytes(size_class));
  lock();
  if (stats_.bytes_in_use + size > limit_) {
    const int64_t in_use = stats_.bytes_in_use;
    unlock();
    throw OutOfMemory(str("[allocator] the request exceeds the memory limit of ", limit_,
                          " bytes; received ", bytes, " bytes, with ", in_use,
                          " bytes in use; free tensors or raise the limit"));
  }
  ++stats_.num_allocations;
  void*& first = free_[static_cast<size_t>(size_class)];
  void* block = first;
  if (block != nullptr) {
    first = static_cast<FreeBlock*>(block)->next;
    ++stats_.num_cache_hits;
    stats_.bytes_cached -= size;
  }
  stats_.bytes_in_use += size;
  if (stats_.bytes_in_use > stats_.peak_bytes_in_use)
    stats_.peak_bytes_in_use = stats_.bytes_in_use;
  unlock();
  // Before a new block is mapped, those of unused classes are returned.
  for (int64_t released = 0; block == nullptr;) {
    lock();
    stats_.bytes_cached -= released;
    const int unused = keeps_too_much(stats_) ? unused_class(free_, stats_.num_allocations) : -1;
    void* blocks =
        unused < 0 ? nullptr : std::exchange(free_[static_cast<size_t>(unused)], nullptr);
    unlock();
    if (blocks == nullptr) break;
    released = release(blocks, class_bytes(unused));
  }
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
    throw OutOfMemory(str("[allocator] the system has no room for ", bytes, " bytes; ", in_use,
                          " bytes are in use; use smaller batches or save fewer tensors"));
  }
  allow_access(block, bytes);
  forbid_access(static_cast<std::byte*>(block) + bytes, static_cast<size_t>(size) - bytes);
  fill_unwritten(block, bytes);
  return block;
}

void Allocator::deallocate(void* block, size_t bytes) noexcept {
  const int size_class = class_of(bytes);
  const auto size = static_cast<int64_t>(class_bytes(size_class));
  forbid_access(block, static_cast<size_t>(size));
  allow_access(block, sizeof(FreeBlock));
  lock();
  void*& first = free_[static_cast<size_t>(size_class)];
  first = new (block) FreeBlock{first, stats_.num_allocations};
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
  for (size_t i = 0; i < lists.size(); ++i)
    release(lists[i], class_bytes(static_cast<int>(i)));
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
  static Registry& instance = *new Registry;  // never destroyed, as its allocators
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
