// Copies between row-major arrays and oneDNN's blocked layouts.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "core/thread_pool.h"
#include "ops/kernel/box_copy.h"
#include "ops/vendor/onednn.h"

namespace flow::ops {

// Copies float arrays of one shape from or to a layout. A layout without padding is a permutation
// of dims, which the pool's threads share; for others oneDNN's reorder runs on one thread.
class BlockedCopy {
 public:
  // Copies nothing: both sides are row-major.
  BlockedCopy() = default;

  static BlockedCopy to_blocked(const Shape& shape, const BlockedLayout& layout);
  static BlockedCopy to_row_major(const Shape& shape, const BlockedLayout& layout);

  // False if both sides are row-major.
  explicit operator bool() const { return loop_ || reorder_ != nullptr; }

  // Of run()'s `scratch`, which is aligned to 64 bytes.
  size_t scratch_bytes() const { return reorder_ == nullptr ? 0 : reorder_->scratch_bytes(); }

  // Requires: *this.
  void run(ThreadPool& pool, const std::byte* source, std::byte* target, std::byte* scratch) const;

 private:
  std::optional<BoxLoop> loop_;
  std::shared_ptr<const OneDnnKernel> reorder_;
};

}  // namespace flow::ops
