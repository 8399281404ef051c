// What ops/kernel/mma_cuda.cuh writes as PTX, as host code: every lane publishes its parts of the
// matrices and computes its own part of the result.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/float16.h"
#include "device_code.h"

namespace cuda_emulator {

// The values that all lanes publish.
struct LaneValues {
  uint64_t of[32];

  explicit LaneValues(uint64_t own) {
    const uint64_t* all = exchange(0xffffffffu, own);
    std::copy(all, all + 32, of);
  }
};

template <class T>
float element_of(uint64_t pairs, unsigned index) {
  T element;
  element.bits = static_cast<uint16_t>(pairs >> 16 * index);
  return static_cast<float>(element);
}

template <class T>
void multiply_add(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  const auto join = [](uint32_t low, uint32_t high) {
    return static_cast<uint64_t>(high) << 32 | low;
  };
  // Elements 0 and 1 of a value are of the upper rows, 2 and 3 of the lower ones.
  const LaneValues left(join(a[0], a[1]));
  const LaneValues right(join(a[2], a[3]));
  const LaneValues b(join(b0, b1));
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned row = lane() / 4;
    const unsigned column = lane() % 4 * 2 + i % 2;
    for (unsigned k = 0; k < 16; ++k) {
      const LaneValues& half = k < 8 ? left : right;
      const unsigned at = k % 8 / 2;
      c[i] += element_of<T>(half.of[row * 4 + at], i / 2 * 2 + k % 2) *
              element_of<T>(b.of[column * 4 + at], k / 8 * 2 + k % 2);
    }
  }
}

template <bool kTransposed>
void load_tiles(uint32_t (&tiles)[4], const uint16_t* row) {
  check_alignment(row, 16);
  const LaneValues rows(reinterpret_cast<uint64_t>(row));
  for (unsigned i = 0; i < 4; ++i) {
    const auto element = [&](unsigned r, unsigned c) -> uint32_t {
      return reinterpret_cast<const uint16_t*>(rows.of[i * 8 + r])[c];
    };
    const unsigned g = lane() / 4;
    const unsigned t = lane() % 4 * 2;
    tiles[i] = kTransposed ? element(t, g) | element(t + 1, g) << 16
                           : element(g, t) | element(g, t + 1) << 16;
  }
}

inline void begin_copy(uint16_t* to, const void* from, bool is_inside) {
  check_alignment(to, 16);
  check_alignment(from, 16);
  begin_copy(to, is_inside ? from : nullptr);
}

template <int kLater>
void wait_for_copies() {
  wait_for_copies(kLater);
}

template <class T>
uint32_t pack_pair(float first, float second) {
  return static_cast<uint32_t>(T::from_float(first)) | static_cast<uint32_t>(T::from_float(second))
                                                           << 16;
}

inline float exp2_approximately(float x) {
  return std::exp2(x);
}

}  // namespace cuda_emulator
