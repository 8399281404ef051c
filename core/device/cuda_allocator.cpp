#include "core/device/cuda_allocator.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

#include "core/device/cuda_device.h"
#include "core/device/cuda_error.h"
#include "core/device/joined_launch.h"
#include "core/env.h"
#include "core/error.h"

namespace flow::cuda {

namespace {

constexpr size_t kGranule = 512;
constexpr size_t kMiB = size_t{1} << 20;
// The sizes of PyTorch's CUDACachingAllocator.
constexpr size_t kLargestSmall = kMiB;
constexpr size_t kSmallSegment = 2 * kMiB;
constexpr size_t kLargeSegment = 20 * kMiB;
constexpr size_t kLeastOwnSegment = 10 * kMiB;
constexpr size_t kLargestRest = kMiB;  // of a large block, that is not split off

size_t round_up(size_t bytes, size_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

size_t rounded(size_t bytes) {
  return round_up(std::max<size_t>(bytes, 1), kGranule);
}

size_t segment_bytes(size_t size) {
  if (size <= kLargestSmall) return kSmallSegment;
  return size < kLeastOwnSegment ? kLargeSegment : round_up(size, 2 * kMiB);
}

}  // namespace

// Returns null if the device has no room. Throws other errors, which may be those of earlier work.
void* DeviceAllocator::take_segment(size_t bytes) {
  void* memory = nullptr;
  const cudaError_t result = cudaMalloc(&memory, bytes);
  if (result == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    return nullptr;
  }
  check(result, "cudaMalloc");
  return memory;
}

bool DeviceAllocator::BySize::operator()(const Block* a, const Block* b) const {
  return a->size != b->size ? a->size < b->size : std::less<>()(a->begin, b->begin);
}

bool DeviceAllocator::BySize::operator()(const Block* a, size_t size) const {
  return a->size < size;
}

DeviceAllocator::DeviceAllocator(int device, cudaStream_t stream,
                                 std::function<void()> release_others)
    : device_(device),
      stream_(stream),
      caches_(env_int("FLOW_CUDA_CACHE", 1) != 0),
      release_others_(std::move(release_others)) {}

// The new block is not among the free ones.
DeviceAllocator::Block& DeviceAllocator::add_block(std::byte* begin, size_t size, bool is_large) {
  auto made = std::make_unique<Block>();
  made->begin = begin;
  made->size = size;
  made->is_large = is_large;
  made->place = FreeBlocks{made.get()}.extract(made.get());
  return *(blocks_[begin] = std::move(made));
}

void DeviceAllocator::remove_block(Block& block) noexcept {
  blocks_.erase(block.begin);
}

// Returns a block that is no longer among the free ones; null: none is large enough.
DeviceAllocator::Block* DeviceAllocator::take_free(size_t size) {
  FreeBlocks& blocks = free_blocks(size > kLargestSmall);
  const auto found = blocks.lower_bound(size);
  if (found == blocks.end()) return nullptr;
  Block& block = **found;
  stats_.bytes_cached -= static_cast<int64_t>(block.size);
  block.place = blocks.extract(found);
  split(block, size);
  return &block;
}

// If the device has no room for a whole segment, a block of its own may still fit.
DeviceAllocator::Block* DeviceAllocator::take_new(size_t size) {
  size_t taken = segment_bytes(size);
  void* memory = take_segment(taken);
  if (memory == nullptr && taken > size) memory = take_segment(taken = size);
  if (memory == nullptr) return nullptr;
  Block& block = add_block(static_cast<std::byte*>(memory), taken, size > kLargestSmall);
  segments_[block.begin] = {.size = taken};
  split(block, size);
  return &block;
}

// Requires: the block is not among the free ones.
void DeviceAllocator::split(Block& block, size_t size) {
  const size_t rest_size = block.size - size;
  if (rest_size < kGranule || (block.is_large && rest_size <= kLargestRest)) return;
  Block& rest = add_block(block.begin + size, rest_size, block.is_large);
  block.size = size;
  rest.before = &block;
  rest.after = std::exchange(block.after, &rest);
  if (rest.after != nullptr) rest.after->before = &rest;
  stats_.bytes_cached += static_cast<int64_t>(rest_size);
  free_blocks(block.is_large).insert(std::move(rest.place));
}

// Requires: neither is among the free blocks.
void DeviceAllocator::join(Block& block, Block& after) noexcept {
  block.size += after.size;
  block.after = after.after;
  if (block.after != nullptr) block.after->before = &block;
  remove_block(after);
}

void DeviceAllocator::count_allocated(size_t size) {
  ++stats_.num_allocations;
  stats_.bytes_in_use += static_cast<int64_t>(size);
  stats_.peak_bytes_in_use = std::max(stats_.peak_bytes_in_use, stats_.bytes_in_use);
}

void DeviceAllocator::check_limit(size_t bytes) const {
  if (stats_.bytes_in_use <= limit_ - static_cast<int64_t>(rounded(bytes))) return;
  throw OutOfMemory(str("[cuda] the request exceeds the memory limit of ", limit_,
                        " bytes; received ", bytes, " bytes, with ", stats_.bytes_in_use,
                        " bytes in use; free tensors or raise the limit"));
}

// Returns null if there is no room.
void* DeviceAllocator::take(size_t bytes) {
  const size_t size = rounded(bytes);
  if (!caches_) {
    void* memory = take_segment(std::max<size_t>(bytes, 1));
    if (memory != nullptr) count_allocated(size);
    return memory;
  }
  Block* block = take_free(size);
  if (block != nullptr) {
    ++stats_.num_cache_hits;
  } else {
    block = take_new(size);
  }
  if (block == nullptr) return nullptr;
  count_allocated(block->size);
  return block->begin;
}

void* DeviceAllocator::allocate(size_t bytes) {
  std::unique_lock lock(mutex_);
  check_limit(bytes);
  void* block = take(bytes);
  if (block == nullptr && caches_) {
    lock.unlock();
    release_cached();
    lock.lock();
    block = take(bytes);
  }
  if (block == nullptr && release_others_) {
    lock.unlock();
    release_others_();
    lock.lock();
    block = take(bytes);
  }
  if (block == nullptr) fail(bytes);
  return block;
}

void DeviceAllocator::fail(size_t bytes) const {
  size_t device_free = 0;
  size_t device_total = 0;
  warn_if_failed(cudaMemGetInfo(&device_free, &device_total), "cudaMemGetInfo");
  throw OutOfMemory(
      str("[cuda] device ", device_, " has no room for ", bytes, " bytes; this rank uses ",
          stats_.bytes_in_use, " bytes (peak ", stats_.peak_bytes_in_use, ") and caches ",
          stats_.bytes_cached, ", the device has ", device_free, " of ", device_total,
          " bytes free; use a smaller batch, recompute activations, split the model over more "
          "ranks, or free tensors"));
}

void DeviceAllocator::deallocate(void* memory, size_t bytes) noexcept {
  queue_joined_or_warn();  // it may use the block
  if (!caches_) {
    const OnDevice scope(device_);
    // Work on the stream may still use the block.
    warn_if_failed(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    warn_if_failed(cudaFree(memory), "cudaFree");
    const std::lock_guard lock(mutex_);
    stats_.bytes_in_use -= static_cast<int64_t>(rounded(bytes));
    return;
  }
  const std::lock_guard lock(mutex_);
  Block* block = blocks_.find(memory)->second.get();
  FreeBlocks& blocks = free_blocks(block->is_large);
  stats_.bytes_in_use -= static_cast<int64_t>(block->size);
  stats_.bytes_cached += static_cast<int64_t>(block->size);
  if (block->before != nullptr && block->before->is_free()) {
    Block* before = block->before;
    before->place = blocks.extract(before);
    join(*before, *block);
    block = before;
  }
  if (block->after != nullptr && block->after->is_free()) {
    blocks.erase(block->after);
    join(*block, *block->after);
  }
  blocks.insert(std::move(block->place));
}

AllocatorStats DeviceAllocator::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void DeviceAllocator::reset_peak() {
  const std::lock_guard lock(mutex_);
  stats_.peak_bytes_in_use = stats_.bytes_in_use;
}

std::byte* DeviceAllocator::share_segment(const void* memory) {
  const std::lock_guard lock(mutex_);
  const auto* const byte = static_cast<const std::byte*>(memory);
  const auto next = segments_.upper_bound(byte);
  if (next == segments_.begin()) return nullptr;
  auto& [begin, segment] = *std::prev(next);
  if (byte >= begin + segment.size) return nullptr;
  segment.is_shared = true;
  return const_cast<std::byte*>(begin);
}

// The segments are taken out first, so that nothing can be queued that uses them while this waits.
void DeviceAllocator::release_cached() {
  std::vector<void*> released;
  {
    const std::lock_guard lock(mutex_);
    released.reserve(blocks_.size());
    for (FreeBlocks& blocks : free_) {
      for (auto it = blocks.begin(); it != blocks.end();) {
        Block& block = **it;
        if (!block.is_segment() || segments_[block.begin].is_shared) {
          ++it;
          continue;
        }
        it = blocks.erase(it);
        released.push_back(block.begin);
        segments_.erase(block.begin);
        stats_.bytes_cached -= static_cast<int64_t>(block.size);
        remove_block(block);
      }
    }
  }
  if (released.empty()) return;
  FLOW_CUDA_CALL(cudaStreamSynchronize(stream_));
  for (void* segment : released)
    check(cudaFree(segment), "cudaFree");
}

void DeviceAllocator::set_limit(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  limit_ = bytes;
}

}  // namespace flow::cuda
