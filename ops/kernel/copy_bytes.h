// Copies of a few bytes with the file's instruction set, inlined into the loops of kernels. Include
// it with the other headers, before ops/kernel/isa_begin.h; all names live in flow::ops::isa_*.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ops/kernel/isa_begin.h"

inline constexpr size_t kWidest = FLOW_ISA == 2   ? 64
                                  : FLOW_ISA == 1 ? 32
                                                  : 16;  // bytes of a vector

template <class T, size_t kBytes>
struct Lanes {
  using Type [[gnu::vector_size(kBytes)]] = T;
};

template <class T, size_t kBytes>
using LanesOf = typename Lanes<T, kBytes>::Type;

template <class V>
[[gnu::always_inline]] inline V load_lanes(const void* x) {
  V v;
  std::memcpy(&v, x, sizeof(V));
  return v;
}

template <class V>
[[gnu::always_inline]] inline void store_lanes(void* y, V v) {
  std::memcpy(y, &v, sizeof(V));
}

// The first and the last V of a row of one to two V, which overlap.
template <class V>
[[gnu::always_inline]] inline void copy_ends(std::byte* y, const std::byte* x, size_t bytes) {
  const V first = load_lanes<V>(x);
  const V last = load_lanes<V>(x + bytes - sizeof(V));
  store_lanes(y, first);
  store_lanes(y + bytes - sizeof(V), last);
}

// Less than the widest vector.
[[gnu::always_inline]] inline void copy_few(std::byte* y, const std::byte* x, size_t bytes) {
  if constexpr (kWidest > 32) {
    if (bytes >= 32) return copy_ends<LanesOf<uint8_t, 32>>(y, x, bytes);
  }
  if constexpr (kWidest > 16) {
    if (bytes >= 16) return copy_ends<LanesOf<uint8_t, 16>>(y, x, bytes);
  }
  if (bytes >= 8) return copy_ends<uint64_t>(y, x, bytes);
  if (bytes >= 4) return copy_ends<uint32_t>(y, x, bytes);
  for (size_t i = 0; i < bytes; ++i)
    y[i] = x[i];
}

inline constexpr size_t kLargeBytes = size_t{4}
                                      << 20;  // from here on memcpy stores past the caches

// The loop of memcpy is several times slower on some CPUs where y is a little behind x modulo the
// size of a page.
[[gnu::always_inline]] inline void copy_bytes(std::byte* y, const std::byte* x, size_t bytes) {
  using V = LanesOf<uint8_t, kWidest>;
  if (bytes < kWidest) return copy_few(y, x, bytes);
  if (bytes >= kLargeBytes) {
    std::memcpy(y, x, bytes);
    return;
  }
  const V last = load_lanes<V>(x + bytes - kWidest);
  size_t i = 0;
  for (; i + 4 * kWidest <= bytes; i += 4 * kWidest) {
    const V a = load_lanes<V>(x + i);
    const V b = load_lanes<V>(x + i + kWidest);
    const V c = load_lanes<V>(x + i + 2 * kWidest);
    const V d = load_lanes<V>(x + i + 3 * kWidest);
    store_lanes(y + i, a);
    store_lanes(y + i + kWidest, b);
    store_lanes(y + i + 2 * kWidest, c);
    store_lanes(y + i + 3 * kWidest, d);
  }
  for (; i + kWidest < bytes; i += kWidest)
    store_lanes(y + i, load_lanes<V>(x + i));
  store_lanes(y + bytes - kWidest, last);
}

#include "ops/kernel/isa_end.h"
