// Reference-counted memory that tensors and their views share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "core/allocator.h"
#include "core/ref.h"

namespace flow {

// The header and the bytes are one block if the bytes come from an Allocator. The version counts
// in-place writes through any tensor that shares the storage.
class Storage final : public RefCounted<Storage> {
 public:
  // Returns uninitialised bytes, 64-byte aligned. Throws OutOfMemory.
  static Ref<Storage> allocate(Allocator& allocator, size_t bytes);
  // Wraps memory that another party owns; `deleter` (may be empty) runs when the last reference is
  // released.
  static Ref<Storage> wrap(void* data, size_t bytes, std::function<void(void*)> deleter);

  // The size of the block that allocate() takes for `bytes`, as the allocator's statistics count
  // it.
  static int64_t block_bytes(int64_t bytes);

  std::byte* data() const { return data_; }

  size_t bytes() const { return bytes_; }

  uint32_t version() const { return version_; }

  // Of what this is a twin of too: who reads that has to notice.
  void bump_version() {
    ++version_;
    if (twin_of_ != nullptr) [[unlikely]]
      ++twin_of_->version_;
  }

  // Of memory in a blocked layout: the same values strided, once they were needed, else null
  // (core/strided_twin.h).
  const Ref<Storage>& twin() const { return twin_; }

  // Requires: no twin yet.
  void set_twin(Ref<Storage> twin);

  // What this is the strided twin of; null for other storages, and once that has died.
  Storage* twin_of() const { return twin_of_; }

  // Whether the twin holds the values, because it may have been written.
  bool is_outdated() const { return is_outdated_; }

  void set_outdated() { is_outdated_ = true; }

  static void destroy(Storage* storage) noexcept;

 private:
  Storage(std::byte* data, size_t bytes) : data_(data), bytes_(bytes) {}

  ~Storage();

  std::byte* data_;
  size_t bytes_;
  Allocator* allocator_ = nullptr;  // null: wrapped memory
  uint32_t version_ = 0;
  bool is_outdated_ = false;
  std::function<void(void*)>* deleter_ = nullptr;
  Ref<Storage> twin_;
  Storage* twin_of_ = nullptr;
};

}  // namespace flow
