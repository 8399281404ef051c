// The status files from which flowrun reports how a job ended. A rank writes a small file
// STATE_RANK.json in FLOW_STATUS_DIR when it starts to connect with the others ("joining"), when it
// has joined the job ("running"), when an error occurred ("failed"), and when it leaves through
// exit ("ended"). Nothing is written if that variable is not set.
#pragma once

#include <cstdint>
#include <string>

#include "boxing/comm/failure.h"

namespace flow::boxing {

struct RankStatus {
  std::string state;  // "joining", "running", "ended", "failed"
  int exit_code = 0;
  std::string cause = {};  // "error", "told", or the cause of a Failure
  std::string message = {};
  // Where the error occurred: the user's line and the dotted path of the module; empty if unknown.
  std::string site = {};
  std::string module = {};
  Failure failure = {};  // for errors between ranks
  double time = 0;       // when it happened; 0: now
};

// The present time as statuses give it: seconds since 1970.
double status_time();

// The status of a rank that ends because of `failure`. Its exit code is 70 if ranks disagree, 71
// after a time-out, else 72.
RankStatus status_of(const Failure& failure, const std::string& message);

// The file appears in one step. If it cannot be written, that is not an error of the program:
// flowrun still sees the exit code.
void write_rank_status(int64_t rank, const RankStatus& status);

// Ends this process with the status's exit code, after printing its message. Writes the status
// unless the rank has already reported its own end. `rank` is -1 if all thread ranks end with the
// process.
[[noreturn]] void end_process(int64_t rank, const RankStatus& status);

}  // namespace flow::boxing
