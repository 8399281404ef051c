// What flowrun's exit code says, beside 1 to 63, which are the failing rank's own.
#pragma once

namespace flowrun {

inline constexpr int kHighestOwnCode = 63;
inline constexpr int kUsage = 64;
inline constexpr int kStoppedOrTimeout = 71;
inline constexpr int kRankLost = 72;

}  // namespace flowrun
