// Runs the command of a job, and ends it after a failure, a time-out or a signal.
#pragma once

#include <string>
#include <vector>

namespace flowrun {

class Nodes;

struct JobEnd {
  bool has_timed_out = false;  // the job exceeded its limit
  bool was_signalled = false;  // flowrun forwarded a signal to the ranks
  int launcher_status = 0;     // from wait(); does not show reliably how the ranks ended
};

// Forwards signals to the ranks, whose process ids are in the session's folder. After a rank has
// failed, the command has a short time to end by itself; then this function ends it and all ranks.
// `nodes` is null if all ranks are on this host.
JobEnd run_job(const std::vector<std::string>& command, const std::vector<std::string>& environment,
               const std::string& session, long limit_s, Nodes* nodes);

}  // namespace flowrun
