// The status files from which flowrun reports how a job ended. A rank writes a small file
// STATE_RANK.json in FLOW_STATUS_DIR when it has joined the job ("running"), when an error occurred
// ("failed"), and when it leaves through exit ("ended"). Nothing is written if that variable is not
// set.
#pragma once

#include <cstdint>
#include <string>

#include "boxing/comm/failure.h"

namespace flow::boxing {

struct RankStatus {
  std::string state;  // "running", "ended", "failed"
  int exit_code = 0;
  std::string cause = {};  // "error", "told", or the cause of a Failure
  std::string message = {};
  Failure failure = {};  // for errors between ranks
};

// The status of a rank that ends because of `failure`. Its exit code is 70 if ranks disagree, 71
// after a time-out, else 72.
RankStatus status_of(const Failure& failure, const std::string& message);

// The file appears in one step. If it cannot be written, that is not an error of the program:
// flowrun still sees the exit code.
void write_rank_status(int64_t rank, const RankStatus& status);

}  // namespace flow::boxing
