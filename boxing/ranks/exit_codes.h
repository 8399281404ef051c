// The exit codes of ranks and of flowrun (docs/ranks.md has the table). Codes 1 to 63 are those
// that programs choose.
#pragma once

namespace flow::exit_codes {

inline constexpr int kError = 1;
inline constexpr int kHighestOwn = 63;
inline constexpr int kUsage = 64;
inline constexpr int kBadFile = 65;
inline constexpr int kMismatch = 70;
inline constexpr int kStoppedOrTimeout = 71;
inline constexpr int kRankLost = 72;
inline constexpr int kOutOfMemory = 73;
inline constexpr int kInputOutput = 74;
inline constexpr int kRestartsExhausted = 75;

}  // namespace flow::exit_codes
