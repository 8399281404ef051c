// The error that ends flowrun, and the exit codes it uses.
#pragma once

#include <stdexcept>
#include <string>

#include "boxing/ranks/exit_codes.h"

namespace flowrun {

using flow::exit_codes::kHighestOwn;
using flow::exit_codes::kInputOutput;
using flow::exit_codes::kRankLost;
using flow::exit_codes::kRestartsExhausted;
using flow::exit_codes::kStoppedOrTimeout;
using flow::exit_codes::kUsage;

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
