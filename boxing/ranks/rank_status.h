// What a rank leaves for flowrun, which reports how a job ended: a small file STATE_RANK.json in
// FLOW_STATUS_DIR when it has joined the job ("running"), when something went wrong ("failed") and
// when it leaves by way of exit ("ended"). Without that variable nothing is written.
#pragma once

#include <cstdint>
#include <string>

#include "boxing/comm/failure.h"

namespace flow::boxing {

struct RankStatus {
  std::string state;  // "running", "ended", "failed"
  int exit_code = 0;
  std::string cause = {};  // "error", "told", or of a Failure
  std::string message = {};
  Failure failure = {};  // where ranks did not fit together
};

// Of a rank that ends because of `failure`: its exit code is 70 where ranks disagree, 71 after a
// time-out, else 72.
RankStatus status_of(const Failure& failure, const std::string& message);

// The file appears in one step. One that cannot be written is no error of the program's:
// flowrun sees the exit code all the same.
void write_rank_status(int64_t rank, const RankStatus& status);

}  // namespace flow::boxing
