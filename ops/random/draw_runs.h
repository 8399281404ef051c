// Draws runs of consecutive logical elements. Every element is computed from its own Philox block
// (core/generator.h), so a run can start anywhere: whole groups of blocks are computed together and
// the part that is needed is kept. Include it with the other headers, before
// ops/kernel/isa_begin.h; all names are in flow::ops::isa_*.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/generator.h"
#include "core/tensor_meta.h"

#include "ops/kernel/isa_begin.h"

// Number of blocks computed together: enough for the widest vectors, and small enough for the
// first-level cache.
inline constexpr int64_t kDrawBlocks = 64;
inline constexpr size_t kDrawLanes = 4 * kDrawBlocks;

// lanes[4 b + l] is lane l of block first + b.
inline void philox_group(const RandomStream& random, uint64_t first, uint32_t* lanes) {
  std::array<uint32_t, kDrawBlocks> c0, c1, c2, c3;
  for (size_t b = 0; b < kDrawBlocks; ++b) {
    c0[b] = static_cast<uint32_t>(first + b);
    c1[b] = static_cast<uint32_t>((first + b) >> 32);
    c2[b] = static_cast<uint32_t>(random.seed >> 32);
    c3[b] = static_cast<uint32_t>(random.stream >> 32) ^ static_cast<uint32_t>(random.rank);
  }
  uint32_t k0 = static_cast<uint32_t>(random.seed);
  uint32_t k1 = static_cast<uint32_t>(random.stream);
  for (int round = 0; round < 10; ++round) {
    for (size_t b = 0; b < kDrawBlocks; ++b) {
      const uint64_t p0 = uint64_t{0xD2511F53u} * c0[b];
      const uint64_t p1 = uint64_t{0xCD9E8D57u} * c2[b];
      const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1[b] ^ k0;
      const uint32_t n2 = static_cast<uint32_t>(p0 >> 32) ^ c3[b] ^ k1;
      c1[b] = static_cast<uint32_t>(p1);
      c3[b] = static_cast<uint32_t>(p0);
      c0[b] = n0;
      c2[b] = n2;
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (size_t b = 0; b < kDrawBlocks; ++b) {
    lanes[4 * b] = c0[b];
    lanes[4 * b + 1] = c1[b];
    lanes[4 * b + 2] = c2[b];
    lanes[4 * b + 3] = c3[b];
  }
}

// Describes the local part as runs of consecutive logical indices. Trailing dims that are whole
// form one run.
struct LogicalRuns {
  int64_t count = 1;   // runs
  int64_t length = 1;  // elements of each
  int64_t outer = 0;   // dims before the run's

  explicit LogicalRuns(const TensorMeta& meta) : outer(meta.local_shape.size()) {
    bool whole = true;
    while (outer > 0 && whole) {
      --outer;
      length *= meta.local_shape[outer];
      whole = meta.local_shape[outer] == meta.shape[outer];
    }
    for (int64_t d = 0; d < outer; ++d)
      count *= meta.local_shape[d];
  }

  // The logical index of run r's first element.
  int64_t first(const TensorMeta& meta, int64_t r) const {
    const Strides logical = contiguous_strides(meta.shape);
    int64_t index = 0;
    for (int64_t d = meta.shape.size() - 1; d >= 0; --d) {
      int64_t at = meta.local_begin[d];
      if (d < outer) {
        at += r % meta.local_shape[d];
        r /= meta.local_shape[d];
      }
      index += at * logical[d];
    }
    return index;
  }
};

// The offset in memory of the i-th element (row-major) of a strided part.
inline int64_t offset_of(const TensorMeta& meta, int64_t i) {
  int64_t offset = 0;
  for (int64_t d = meta.local_shape.size() - 1; d >= 0; --d) {
    offset += i % meta.local_shape[d] * meta.strides[d];
    i /= meta.local_shape[d];
  }
  return offset;
}

#include "ops/kernel/isa_end.h"
