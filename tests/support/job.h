// Runs a command that starts processes, and ensures that nothing outlives the test. If the system
// allows it (root), the command runs in new process and mount namespaces with a separate /dev/shm,
// else in a new session. It never runs longer than a limit.
#pragma once

#include <string>
#include <vector>

namespace flow {

struct JobOptions {
  std::vector<std::string> environment = {};  // "NAME=value"
  int limit_s = 30;
};

struct JobResult {
  int exit_code = -1;  // -1: it was ended after limit_s
  double seconds = 0;
  std::string output;                // stdout and stderr
  std::vector<std::string> remains;  // in a box: processes and files of /dev/shm that it left
  bool was_inspected = false;        // `remains` is known: it ran in a box, and was not ended
};

// True if jobs run in a box: separate process and mount namespaces.
bool jobs_are_boxed();

JobResult run_job(const std::vector<std::string>& command, const JobOptions& options = {});

// Expects that the job left no process and no file in /dev/shm. Without a box this cannot be seen:
// the test then counts as skipped if the rest of it passes.
void expect_nothing_remains(const JobResult& job);

// The command line of `mpirun -n ranks` that works for any user and number of cores.
std::vector<std::string> mpirun(int ranks, const std::vector<std::string>& command);

}  // namespace flow
