// A node of a job other than the head. It waits for commands of the head, runs Open MPI's daemon,
// and sends the files of its ranks to the head.
#pragma once

#include <string>

#include "tools/flowrun/options.h"

namespace flowrun {

// Takes part in one job, and returns the exit code of the job.
int run_node(const Options& options, const std::string& secret);

}  // namespace flowrun
