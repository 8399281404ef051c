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

  void bump_version() { ++version_; }

  static void destroy(Storage* storage) noexcept;

 private:
  Storage(std::byte* data, size_t bytes) : data_(data), bytes_(bytes) {}

  ~Storage() = default;

  std::byte* data_;
  size_t bytes_;
  Allocator* allocator_ = nullptr;  // null: wrapped memory
  uint32_t version_ = 0;
  std::function<void(void*)>* deleter_ = nullptr;
};

}  // namespace flow
