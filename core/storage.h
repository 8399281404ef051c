// Counted memory that tensors and their views share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "core/allocator.h"
#include "core/ref.h"

namespace flow {

// Header and bytes lie in one block where the bytes come from an Allocator. The version counts
// in-place writes through any tensor that shares the storage.
class Storage final : public RefCounted<Storage> {
 public:
  // Uninitialised bytes, 64-byte aligned. Throws OutOfMemory.
  static Ref<Storage> allocate(Allocator& allocator, size_t bytes);
  // Memory owned by somebody else; `deleter` (may be empty) runs when the last owner goes.
  static Ref<Storage> wrap(void* data, size_t bytes, std::function<void(void*)> deleter);

  // What allocate() takes from the allocator, as its statistics count.
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
