// The two 16-bit floating types. They store values only: arithmetic is done in float.
#pragma once

#include <bit>
#include <cstdint>

namespace flow {

// IEEE 754 binary16. Conversion rounds to nearest even and preserves NaN.
struct Float16 {
  uint16_t bits = 0;

  Float16() = default;

  explicit Float16(float value) : bits(from_float(value)) {}

  explicit operator float() const { return to_float(bits); }

  bool operator==(const Float16& other) const { return float(*this) == float(other); }

  static uint16_t from_float(float value) {
    const uint32_t x = std::bit_cast<uint32_t>(value);
    const uint32_t sign = (x >> 16) & 0x8000u;
    const uint32_t magnitude = x & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);   // NaN
    if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // overflow
    if (magnitude < 0x38800000u) {  // subnormal in half: let float addition round
      const float scaled = std::bit_cast<float>(magnitude) + std::bit_cast<float>(0x3f000000u);
      return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(scaled) - 0x3f000000u));
    }
    const uint32_t odd = (magnitude >> 13) & 1u;
    return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
  }

  static float to_float(uint16_t half) {
    const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
    const uint32_t magnitude = half & 0x7fffu;
    if (magnitude >= 0x7c00u) {
      return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
    }
    if (magnitude >= 0x400u) return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
  }
};

// The upper half of a binary32. Conversion rounds to nearest even and preserves NaN.
struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;

  explicit BFloat16(float value) : bits(from_float(value)) {}

  explicit operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }

  bool operator==(const BFloat16& other) const { return float(*this) == float(other); }

  static uint16_t from_float(float value) {
    const uint32_t x = std::bit_cast<uint32_t>(value);
    if ((x & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((x >> 16) | 0x40u);
    return static_cast<uint16_t>((x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
  }
};

}  // namespace flow
