#include <bit>
#include <map>
#include <mutex>
#include <vector>

#include "core/context.h"
#include "core/device/cuda_device.h"
#include "core/device/cuda_error.h"
#include "core/device/device_memory.h"

namespace flow {

namespace {

// Pinned host memory is expensive to allocate, so freed blocks are kept by size.
class PinnedCache {
 public:
  void* allocate(size_t size) {
    const std::lock_guard lock(mutex_);
    Blocks& blocks = blocks_[size];
    if (!blocks.free.empty()) {
      void* block = blocks.free.back();
      blocks.free.pop_back();
      return block;
    }
    void* block = nullptr;
    FLOW_CUDA_CALL(cudaMallocHost(&block, size));
    blocks.free.reserve(++blocks.count);  // so that freeing takes no memory
    return block;
  }

  void deallocate(void* block, size_t size) noexcept {
    const std::lock_guard lock(mutex_);
    blocks_.find(size)->second.free.push_back(block);
  }

  // Four sizes for each power of two.
  static size_t rounded(size_t bytes) {
    constexpr size_t kLeast = 4096;
    if (bytes <= kLeast) return kLeast;
    const size_t quarter = std::bit_floor(bytes - 1) / 4;
    return (bytes + quarter - 1) / quarter * quarter;
  }

 private:
  struct Blocks {
    std::vector<void*> free;
    size_t count = 0;
  };

  std::mutex mutex_;
  std::map<size_t, Blocks> blocks_;  // by size; guarded by mutex_
};

PinnedCache& pinned_cache() {
  static PinnedCache& instance = *new PinnedCache;  // never destroyed: static tensors may use it
  return instance;
}

}  // namespace

Ref<Storage> allocate_storage(RankContext& rank, DeviceType device, size_t bytes) {
  if (device == DeviceType::kCpu) return Storage::allocate(rank.allocator(), bytes);
  cuda::RankDevice& owner = cuda::rank_device(rank);
  void* block = owner.allocator().allocate(bytes);
  return Storage::wrap(
      block, bytes, [&owner, bytes](void* freed) { owner.allocator().deallocate(freed, bytes); });
}

Ref<Storage> allocate_staging(RankContext& rank, size_t bytes) {
  cuda::rank_device(rank);  // creates the CUDA context to which pinned memory belongs
  const size_t size = PinnedCache::rounded(bytes);
  void* block = pinned_cache().allocate(size);
  return Storage::wrap(block, bytes,
                       [size](void* freed) { pinned_cache().deallocate(freed, size); });
}

void copy_bytes(RankContext& rank, void* target, DeviceType target_device, const void* source,
                DeviceType source_device, size_t bytes) {
  if (bytes == 0) return;
  cuda::RankDevice& owner = cuda::rank_device(rank);
  const cudaStream_t stream = owner.compute_stream();
  const bool goes_up = target_device == DeviceType::kCuda && source_device == DeviceType::kCpu;
  if (goes_up && bytes <= cuda::UploadRing::kMostBytes) {
    return owner.uploads().copy(target, source, bytes);
  }
  FLOW_CUDA_CALL(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDefault, stream));
  const bool is_on_device = target_device == DeviceType::kCuda && source_device == target_device;
  if (is_on_device) return;
  FLOW_CUDA_CALL(cudaStreamSynchronize(stream));
  if (target_device == DeviceType::kCpu) owner.throw_fault();
}

void synchronize_device(RankContext& rank, DeviceType device) {
  if (device == DeviceType::kCuda) cuda::rank_device(rank).synchronize();
}

}  // namespace flow
