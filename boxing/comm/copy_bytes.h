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

// The size of blocks that are made in a buffer and streamed from there: so short that the loads of
// one overlap with the stores of the one before.
inline constexpr int64_t kStreamBlockBytes = 2 << 10;

using CopyBytes = void (*)(std::byte* target, const std::byte* source, int64_t bytes);

// The copy function for parts of data that other cores read next, of `whole_bytes` bytes in all.
// The caller must call end_streams() before it tells them. Large data bypasses the caches on AMD
// CPUs whose cores do not share one last-level cache: what a core of another group has modified
// arrives at 2 GB/s, what is in memory at 15 (Zen 4).
CopyBytes share_for(int64_t whole_bytes);

// The copy function that suits a result of `whole_bytes` bytes, for parts that are not short.
inline CopyBytes copy_for(int64_t whole_bytes) {
  return whole_bytes > kPastCacheBytes ? stream_bytes : copy_bytes;
}

// The same for short parts; the caller must call end_streams() afterwards.
inline CopyBytes part_copy_for(int64_t whole_bytes) {
  return whole_bytes > kPastCacheBytes ? stream_part : copy_bytes;
}

}  // namespace flow::boxing
