// Runs a command that starts processes of its own, so that nothing outlives the test: in a process
// and mount namespace with a /dev/shm of its own where the system allows it (root), else in a
// session of its own, and never longer than a limit.
#pragma once

#include <string>
#include <vector>

namespace flow {

struct JobOptions {
  std::vector<std::string> environment = {};  // "NAME=value"
  int limit_s = 30;
};

struct JobResult {
  int exit_code = -1;  // -1: it had to be ended after limit_s
  double seconds = 0;
  std::string output;                // of both streams
  std::vector<std::string> remains;  // processes and files of /dev/shm it left, where boxed
};

// Whether jobs get namespaces of their own.
bool jobs_are_boxed();

JobResult run_job(const std::vector<std::string>& command, const JobOptions& options = {});

// The command line of `mpirun -n ranks`, for any user and number of cores.
std::vector<std::string> mpirun(int ranks, const std::vector<std::string>& command);

}  // namespace flow
