// Sizes and copies of host memory in communicators.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"

namespace flow::boxing {

inline int64_t bytes_of(int64_t count, DType dtype) {
  return count * static_cast<int64_t>(dtype_size(dtype));
}

// Does nothing if source and target are equal. The buffers may overlap.
void copy_bytes(std::byte* target, const std::byte* source, int64_t bytes);

// Like copy_bytes, for buffers that do not overlap and a target that another core has read. On CPUs
// that gain from it, the target's cache lines are prefetched before the stores, which would
// otherwise wait for one line after another.
void copy_to_shared(std::byte* target, const std::byte* source, int64_t bytes);

// If a whole result is larger than this, it leaves the caches before it is read again.
inline constexpr int64_t kPastCacheBytes = 8 << 20;

// Like copy_bytes, without overlap, for a part of such a large result. The stores bypass the
// caches, so they do not read the target's lines first.
void stream_bytes(std::byte* target, const std::byte* source, int64_t bytes);
// Like stream_bytes, for one of many short parts. Other threads see the data only after
// end_streams().
void stream_part(std::byte* target, const std::byte* source, int64_t bytes);
void end_streams();

// The copy function that suits a result of `whole_bytes` bytes, for parts that are not short.
inline auto* copy_for(int64_t whole_bytes) {
  return whole_bytes > kPastCacheBytes ? stream_bytes : copy_bytes;
}

}  // namespace flow::boxing
