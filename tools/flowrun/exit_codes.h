// The exit codes of flowrun. Codes 1 to 63 are those of the failing rank.
#pragma once

#include <stdexcept>
#include <string>

namespace flowrun {

inline constexpr int kHighestOwnCode = 63;
inline constexpr int kUsage = 64;
inline constexpr int kStoppedOrTimeout = 71;
inline constexpr int kRankLost = 72;
inline constexpr int kRestartsExhausted = 75;

// The reason why a job cannot run at all.
class JobError : public std::runtime_error {
 public:
  JobError(int exit_code, const std::string& what)
      : std::runtime_error(what), exit_code_(exit_code) {}

  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

}  // namespace flowrun
