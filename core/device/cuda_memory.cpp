#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <vector>

#include "core/context.h"
#include "core/device/cuda_device.h"
#include "core/device/cuda_error.h"
#include "core/device/device_graph.h"
#include "core/device/device_memory.h"
#include "core/error.h"

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
    begins_[static_cast<std::byte*>(block)] = size;
    blocks.free.reserve(++blocks.count);  // so that freeing takes no memory
    return block;
  }

  void deallocate(void* block, size_t size) noexcept {
    const std::lock_guard lock(mutex_);
    blocks_.find(size)->second.free.push_back(block);
  }

  bool has(const void* address) const {
    const std::lock_guard lock(mutex_);
    const auto* byte = static_cast<const std::byte*>(address);
    const auto next = begins_.upper_bound(byte);
    if (next == begins_.begin()) return false;
    const auto& [begin, size] = *std::prev(next);
    return byte < begin + size;
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

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::map<size_t, Blocks> blocks_;            // by size
  std::map<const std::byte*, size_t> begins_;  // of all blocks
};

PinnedCache& pinned_cache() {
  static PinnedCache& instance = *new PinnedCache;  // never destroyed: static tensors may use it
  return instance;
}

int device_of(const void* memory) {
  cudaPointerAttributes attributes = {};
  FLOW_CUDA_CALL(cudaPointerGetAttributes(&attributes, memory));
  return attributes.device;
}

// Queues a copy between places in device memory, one of which may be that of another device.
void copy_within_devices(const cuda::RankDevice& own, void* target, const void* source,
                         size_t bytes) {
  const int to = device_of(target);
  const int from = device_of(source);
  if (to == from) {
    FLOW_CUDA_CALL(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToDevice, own.stream()));
  } else {
    FLOW_CUDA_CALL(cudaMemcpyPeerAsync(target, to, source, from, bytes, own.stream()));
  }
}

void copy_up(cuda::RankDevice& own, void* target, const void* source, size_t bytes) {
  cuda::refuse_in_capture("the host writes device memory");
  // Pinned memory needs no way through the ring, but the caller may change it when this returns.
  if (bytes <= cuda::PinnedRing::kSlotBytes || !pinned_cache().has(source)) {
    return own.ring().upload(target, source, bytes);
  }
  FLOW_CUDA_CALL(cudaMemcpyAsync(target, source, bytes, cudaMemcpyHostToDevice, own.stream()));
  FLOW_CUDA_CALL(cudaStreamSynchronize(own.stream()));
}

void copy_down(cuda::RankDevice& own, void* target, const void* source, size_t bytes) {
  cuda::refuse_in_capture("the host reads device memory");
  if (pinned_cache().has(target)) {
    FLOW_CUDA_CALL(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToHost, own.stream()));
    FLOW_CUDA_CALL(cudaStreamSynchronize(own.stream()));
  } else {
    own.ring().download(target, source, bytes);
  }
  own.throw_fault();
}

}  // namespace

Ref<Storage> allocate_storage(RankContext& rank, DeviceType device, size_t bytes) {
  if (device == DeviceType::kCpu) return Storage::allocate(rank.allocator(), bytes);
  if (CaptureMemory* const memory = cuda::capture_memory()) return memory->take(rank, bytes);
  cuda::DeviceAllocator& owner = cuda::rank_device(rank).allocator();
  void* block = owner.allocate(bytes);
  return Storage::wrap(
      block, bytes, [&owner, bytes](void* freed) { owner.deallocate(freed, bytes); }, &owner);
}

Ref<Storage> allocate_staging(RankContext& rank, size_t bytes) {
  cuda::refuse_in_capture("host memory takes part");
  cuda::rank_device(rank);  // creates the CUDA context to which pinned memory belongs
  const size_t size = PinnedCache::rounded(bytes);
  void* block = pinned_cache().allocate(size);
  return Storage::wrap(block, bytes,
                       [size](void* freed) { pinned_cache().deallocate(freed, size); });
}

void copy_bytes(RankContext& rank, void* target, DeviceType target_device, const void* source,
                DeviceType source_device, size_t bytes) {
  if (bytes == 0) return;
  const bool to_host = target_device == DeviceType::kCpu;
  const bool from_host = source_device == DeviceType::kCpu;
  if (to_host && from_host) {
    std::memcpy(target, source, bytes);
    return;
  }
  cuda::RankDevice& own = cuda::rank_device(rank);
  if (from_host) {
    copy_up(own, target, source, bytes);
  } else if (!to_host) {
    copy_within_devices(own, target, source, bytes);
  } else if (const Ref<Storage> here = cuda::copy_of_elsewhere(rank, source, bytes)) {
    copy_down(own, target, here->data(), bytes);
  } else {
    copy_down(own, target, source, bytes);
  }
}

Ref<Storage> cuda::copy_of_elsewhere(RankContext& rank, const void* source, size_t bytes) {
  RankDevice& own = rank_device(rank);
  if (bytes == 0 || device_of(source) == own.index()) return {};
  Ref<Storage> here = allocate_storage(rank, DeviceType::kCuda, bytes);
  copy_within_devices(own, here->data(), source, bytes);
  return here;
}

bool is_elsewhere(RankContext& rank, const TensorImpl& tensor) {
  if (tensor.meta->device == DeviceType::kCpu || !tensor.storage) return false;
  const cuda::DeviceAllocator* owner = tensor.storage->device_owner();
  return owner != nullptr && owner->device() != cuda::rank_device(rank).index();
}

bool is_of_other_rank(RankContext& rank, const TensorImpl& tensor) {
  if (tensor.meta->device == DeviceType::kCpu || !tensor.storage) return false;
  const cuda::DeviceAllocator* owner = tensor.storage->device_owner();
  return owner != nullptr && !cuda::rank_device(rank).owns(owner);
}

Ref<Storage> taken_over(RankContext& rank, Ref<Storage> memory) {
  const cuda::DeviceAllocator* owner = memory ? memory->device_owner() : nullptr;
  if (owner == nullptr) return memory;
  cuda::RankDevice& device = cuda::rank_device(rank);
  const cuda::DeviceAllocator& own = device.allocator();
  if (owner == &own || !device.owns(owner)) return memory;
  std::byte* const data = memory->data();
  const size_t bytes = memory->bytes();
  return Storage::wrap(
      data, bytes,
      [memory = std::move(memory), owner, &own](void* /*data*/) {
        cuda::warn_if_failed(cuda::order_work(own, *owner), "cudaStreamWaitEvent");
      },
      &own);
}

// What a background task is given was ordered when the task began (boxing/comm/background_work.h).
void OthersMemory::order(const TensorImpl& tensor, const char* op, Site site, Where where) {
  const cuda::DeviceAllocator* owner = tensor.storage->device_owner();
  cuda::RankDevice& device = cuda::rank_device(rank_);
  const cuda::DeviceAllocator& own = device.allocator();
  if (owner == nullptr || owner == &own || device.is_of_compute_stream(owner)) return;
  if (where == Where::kHere && owner->device() != own.device()) {
    throw InvalidArgument(
        str("[", op, "] a tensor is in the memory of device cuda:", owner->device(),
            ", but this rank computes on cuda:", own.device(), "; copy it with to(\"cuda\") first"),
        site);
  }
  if (std::find(owners_.begin(), owners_.end(), owner) != owners_.end()) return;
  own_ = &own;
  owners_.push_back(owner);
  cuda::check(cuda::order_work(*owner, own), "cudaStreamWaitEvent");
}

void OthersMemory::release() noexcept {
  for (const cuda::DeviceAllocator* owner : owners_)
    cuda::warn_if_failed(cuda::order_work(*own_, *owner), "cudaStreamWaitEvent");
}

void synchronize_device(RankContext& rank, DeviceType device) {
  if (device == DeviceType::kCuda) cuda::rank_device(rank).synchronize();
}

}  // namespace flow
