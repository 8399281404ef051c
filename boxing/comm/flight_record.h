// What the flight recorder of a rank writes and flowrun reads: plain bytes of one machine and one
// build, in a file that survives the rank.
#pragma once

#include <array>
#include <cstdint>

namespace flow::boxing {

struct FlightRecord {
  enum class State : uint32_t { kNone, kWaiting, kMet };

  uint64_t number = 0;  // from 1, over all groups of the rank; 0: never written
  State state = State::kNone;
  int32_t num_dims = 0;
  int64_t time_us = 0;  // since the epoch
  int64_t count = 0;
  int64_t line = 0;
  std::array<int64_t, 8> shape{};
  // Ended by 0; longer names lose their end, longer paths their beginning.
  std::array<char, 40> op{};
  std::array<char, 24> collective{};
  std::array<char, 12> dtype{};
  std::array<char, 76> file{};
};

// Written in a ring: number n stands at place n modulo this.
inline constexpr uint64_t kFlightRecords = 64;

}  // namespace flow::boxing
