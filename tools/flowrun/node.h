// A node of a job other than the head: it waits for orders, runs Open MPI's daemon, and hands in
// what its ranks write down.
#pragma once

#include <string>

#include "tools/flowrun/options.h"

namespace flowrun {

// Takes part in one job; the exit code is the job's.
int run_node(const Options& options, const std::string& secret);

}  // namespace flowrun
