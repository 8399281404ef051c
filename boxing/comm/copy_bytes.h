// Sizes and copies of host memory in communicators.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"

namespace flow::boxing {

inline int64_t bytes_of(int64_t count, DType dtype) {
  return count * static_cast<int64_t>(dtype_size(dtype));
}

// Nothing where both are one place. They may overlap.
void copy_bytes(std::byte* target, const std::byte* source, int64_t bytes);

// As copy_bytes without overlap, to memory that another core has read: its lines are fetched ahead
// of the stores, which would wait for one after the other.
void copy_to_shared(std::byte* target, const std::byte* source, int64_t bytes);

// Results of a whole larger than this leave the caches before they are read again.
inline constexpr int64_t kPastCacheBytes = 8 << 20;

// As copy_bytes without overlap, for a part of such a whole: stores past the caches, which need not
// read the target's lines first.
void stream_bytes(std::byte* target, const std::byte* source, int64_t bytes);
// The same for one of many short parts: other threads see it after end_streams() only.
void stream_part(std::byte* target, const std::byte* source, int64_t bytes);
void end_streams();

// The one that fits a whole of so many bytes, for parts of it that are not short.
inline auto* copy_for(int64_t whole_bytes) {
  return whole_bytes > kPastCacheBytes ? stream_bytes : copy_bytes;
}

}  // namespace flow::boxing
