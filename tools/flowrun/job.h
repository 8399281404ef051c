// Runs the command of a job and ends it when it has to be ended.
#pragma once

#include <string>
#include <vector>

namespace flowrun {

class Nodes;

struct JobEnd {
  bool has_timed_out = false;  // the limit of the whole job
  bool was_asked = false;      // by SIGINT or SIGTERM
  int launcher_status = 0;     // of wait(); no reliable sign of how the ranks ended
};

// Passes signals on to the ranks, whose process ids stand in the session. Once a rank has failed
// the command has a short time to end by itself; then it is ended, and all ranks with it. `nodes`:
// null where all ranks are on this host.
JobEnd run_job(const std::vector<std::string>& command, const std::vector<std::string>& environment,
               const std::string& session, long limit_s, Nodes* nodes);

}  // namespace flowrun
