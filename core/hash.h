// A small mixing hash for cache keys. It is not meant for untrusted input.
#pragma once

#include <cstddef>
#include <cstdint>

namespace flow {

// Multiply-xorshift over 64-bit words; each step resembles the finaliser of MurmurHash3 (Appleby
// 2011).
class Hasher {
 public:
  constexpr explicit Hasher(uint64_t seed = 0x9e3779b97f4a7c15ULL) : state_(seed) {}

  constexpr void add(uint64_t word) {
    state_ = (state_ ^ word) * 0xff51afd7ed558ccdULL;
    state_ ^= state_ >> 32;
  }

  void add(const void* pointer) { add(reinterpret_cast<uint64_t>(pointer) >> 4); }

  constexpr size_t value() const { return static_cast<size_t>(state_ ^ (state_ >> 29)); }

 private:
  uint64_t state_;
};

}  // namespace flow
