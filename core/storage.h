// Reference-counted memory that tensors and their views share.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/allocator.h"
#include "core/ref.h"

namespace flow {

struct ViewLink;

namespace cuda {
class DeviceAllocator;
}

// The header and the bytes are one block if the bytes come from an Allocator. The version counts
// in-place writes through any tensor that shares the storage. Several threads may read the storage
// at once, and make its twin, while nothing writes it.
class Storage final : public RefCounted<Storage> {
 public:
  // Returns uninitialised bytes, 64-byte aligned. Throws OutOfMemory.
  static Ref<Storage> allocate(Allocator& allocator, size_t bytes);
  // Wraps memory that another party owns; `deleter` (may be empty) runs when the last reference is
  // released. `device_owner`: the allocator of device memory, which must outlive the storage.
  static Ref<Storage> wrap(void* data, size_t bytes, std::function<void(void*)> deleter,
                           const cuda::DeviceAllocator* device_owner = nullptr);

  // The size of the block that allocate() takes for `bytes`, as the allocator's statistics count
  // it.
  static int64_t block_bytes(int64_t bytes);

  std::byte* data() const { return data_; }

  size_t bytes() const { return bytes_; }

  // Whose device memory it is, of the ranks of this process; null for other memory.
  const cuda::DeviceAllocator* device_owner() const {
    const Rare* rare = known_rare();
    return rare == nullptr ? nullptr : rare->device_owner;
  }

  uint32_t version() const { return version_; }

  // Counts for the storage of which this is a twin too, because its readers must notice.
  void bump_version() {
    ++version_;
    if (known_rare() != nullptr) [[unlikely]]
      bump_blocked();
  }

  // The strided form of memory in a blocked layout, once it was needed; else null
  // (core/strided_twin.h).
  const Ref<Storage>& twin() const;

  // Does nothing if another thread has set one meanwhile.
  void set_twin(Ref<Storage> twin);

  // The storage of which this is the strided twin; null for other storages, and once that is gone.
  Storage* twin_of() const {
    const Rare* rare = known_rare();
    return rare == nullptr ? nullptr : rare->twin_of.load(std::memory_order_relaxed);
  }

  // True if the twin holds the values, because it may have been written.
  bool is_outdated() const {
    const Rare* rare = known_rare();
    return rare != nullptr && rare->is_outdated;
  }

  void set_outdated() { rare().is_outdated = true; }

  // What ties this memory to the tensor that it shows a copy of (core/view_link.h); null for nearly
  // all storages.
  ViewLink* view_link() const {
    const Rare* rare = known_rare();
    return rare == nullptr ? nullptr : rare->view_link.get();
  }

  void set_view_link(std::shared_ptr<ViewLink> link) { rare().view_link = std::move(link); }

  static void destroy(Storage* storage) noexcept;

 private:
  Storage(std::byte* data, size_t bytes) : data_(data), bytes_(bytes) {}

  ~Storage();

  // What few storages have.
  struct Rare {
    std::function<void(void*)> deleter;  // of wrapped memory
    const cuda::DeviceAllocator* device_owner = nullptr;
    std::atomic<bool> has_twin = false;  // the twin is complete
    Ref<Storage> twin;
    std::atomic<Storage*> twin_of = nullptr;
    bool is_outdated = false;
    std::shared_ptr<ViewLink> view_link;
  };

  Rare* known_rare() const { return rare_.load(std::memory_order_acquire); }

  Rare& rare();
  void bump_blocked();

  std::byte* data_;
  size_t bytes_;
  Allocator* allocator_ = nullptr;  // null: wrapped memory
  uint32_t version_ = 0;
  std::atomic<Rare*> rare_ = nullptr;
};

}  // namespace flow
