// The records that a rank's flight recorder writes and flowrun reads: plain bytes in a file that
// survives the rank. Both sides must run on one machine and come from one build.
#pragma once

#include <array>
#include <cstdint>

namespace flow::boxing {

struct FlightRecord {
  enum class State : uint32_t { kNone, kWaiting, kMet };

  uint64_t number = 0;  // from 1, over all groups of the rank; 0: unused
  State state = State::kNone;
  int32_t num_dims = 0;
  int64_t time_us = 0;  // since the epoch
  int64_t count = 0;
  int64_t line = 0;
  std::array<int64_t, 8> shape{};
  // Zero-terminated. Longer names are cut at the end, longer paths at the beginning.
  std::array<char, 40> op{};
  std::array<char, 24> collective{};
  std::array<char, 12> dtype{};
  std::array<char, 76> file{};
};

// The records form a ring: record n is at index n modulo this number.
inline constexpr uint64_t kFlightRecords = 64;

}  // namespace flow::boxing
