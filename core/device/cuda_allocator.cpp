#include "core/device/cuda_allocator.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/device/cuda_error.h"
#include "core/env.h"
#include "core/error.h"

namespace flow::cuda {

namespace {
constexpr size_t kGranule = 512;
constexpr size_t kSlabBytes = size_t{2} << 20;
constexpr size_t kLargestInSlab = size_t{256} << 10;
}  // namespace

DeviceAllocator::DeviceAllocator(int device, cudaStream_t stream)
    : device_(device), stream_(stream), caches_(env_int("FLOW_CUDA_CACHE", 1) != 0) {}

size_t DeviceAllocator::rounded(size_t bytes) {
  const size_t granules = std::max<size_t>((bytes + kGranule - 1) / kGranule, 1);
  if (granules <= 8) return granules * kGranule;
  const size_t quarter = std::bit_floor(granules - 1) / 4;
  return (granules + quarter - 1) / quarter * quarter * kGranule;
}

void* DeviceAllocator::from_device(size_t size) {
  if (caches_ && size <= kLargestInSlab) {
    if (slab_left_ < size) {
      void* slab = nullptr;
      if (cudaMalloc(&slab, kSlabBytes) != cudaSuccess) {
        static_cast<void>(cudaGetLastError());
        return nullptr;
      }
      slab_ = static_cast<std::byte*>(slab);
      slab_left_ = kSlabBytes;
    }
    slab_left_ -= size;
    return std::exchange(slab_, slab_ + size);
  }
  void* block = nullptr;
  if (cudaMalloc(&block, size) == cudaSuccess) return block;
  static_cast<void>(cudaGetLastError());
  return nullptr;
}

void DeviceAllocator::collect_finished() {
  std::erase_if(busy_, [&](Busy& busy) {
    const bool is_over = std::all_of(busy.ends.begin(), busy.ends.end(), [](cudaEvent_t end) {
      return cudaEventQuery(end) == cudaSuccess;
    });
    if (!is_over) return false;
    for (cudaEvent_t end : busy.ends)
      warn_if_failed(cudaEventDestroy(end), "cudaEventDestroy");
    free_[busy.size].push_back(busy.block);
    stats_.bytes_cached += static_cast<int64_t>(busy.size);
    return true;
  });
}

void* DeviceAllocator::take(size_t size) {
  if (!busy_.empty()) collect_finished();
  const auto found = free_.find(size);
  if (found == free_.end() || found->second.empty()) return nullptr;
  void* block = found->second.back();
  found->second.pop_back();
  stats_.bytes_cached -= static_cast<int64_t>(size);
  ++stats_.num_cache_hits;
  return block;
}

void* DeviceAllocator::allocate(size_t bytes) {
  const size_t size = rounded(bytes);
  const auto signed_size = static_cast<int64_t>(size);
  std::unique_lock lock(mutex_);
  if (stats_.bytes_in_use > limit_ - signed_size) {
    const int64_t in_use = stats_.bytes_in_use;
    throw OutOfMemory(str("[cuda] the request exceeds the memory limit of ", limit_,
                          " bytes; received ", bytes, " bytes, with ", in_use,
                          " bytes in use; free tensors or raise the limit"));
  }
  void* block = caches_ ? take(size) : from_device(std::max<size_t>(bytes, 1));
  if (block == nullptr && caches_) block = from_device(size);
  if (block == nullptr && caches_) {
    lock.unlock();
    release_cached();
    lock.lock();
    block = from_device(size);
  }
  if (block == nullptr) fail(bytes);
  ++stats_.num_allocations;
  stats_.bytes_in_use += signed_size;
  stats_.peak_bytes_in_use = std::max(stats_.peak_bytes_in_use, stats_.bytes_in_use);
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

void DeviceAllocator::deallocate(void* block, size_t bytes) noexcept {
  const size_t size = rounded(bytes);
  if (!caches_) {
    // Work of any stream may still use the block.
    warn_if_failed(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    warn_if_failed(cudaFree(block), "cudaFree");
  }
  const std::lock_guard lock(mutex_);
  stats_.bytes_in_use -= static_cast<int64_t>(size);
  if (!caches_) {
    other_streams_.erase(block);
    return;
  }
  const auto others = other_streams_.find(block);
  if (others == other_streams_.end()) {
    free_[size].push_back(block);
    stats_.bytes_cached += static_cast<int64_t>(size);
    return;
  }
  Busy busy{block, size, {}};
  for (cudaStream_t stream : others->second) {
    cudaEvent_t end = nullptr;
    warn_if_failed(cudaEventCreateWithFlags(&end, cudaEventDisableTiming), "cudaEventCreate");
    warn_if_failed(cudaEventRecord(end, stream), "cudaEventRecord");
    busy.ends.push_back(end);
  }
  other_streams_.erase(others);
  busy_.push_back(std::move(busy));
}

void DeviceAllocator::record_use(void* block, cudaStream_t stream) {
  if (stream == stream_) return;
  const std::lock_guard lock(mutex_);
  auto& streams = other_streams_[block];
  if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
}

AllocatorStats DeviceAllocator::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void DeviceAllocator::reset_peak() {
  const std::lock_guard lock(mutex_);
  stats_.peak_bytes_in_use = stats_.bytes_in_use;
}

void DeviceAllocator::release_cached() {
  FLOW_CUDA_CALL(cudaDeviceSynchronize());
  const std::lock_guard lock(mutex_);
  collect_finished();
  for (auto& [size, blocks] : free_) {
    if (size <= kLargestInSlab) continue;
    for (void* block : blocks) {
      FLOW_CUDA_CALL(cudaFree(block));
      stats_.bytes_cached -= static_cast<int64_t>(size);
    }
    blocks.clear();
  }
}

void DeviceAllocator::set_limit(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  limit_ = bytes;
}

}  // namespace flow::cuda
