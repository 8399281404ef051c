// Starts the commands of a job.
#pragma once

#include <csignal>
#include <string>
#include <vector>

#include <sys/types.h>

namespace flowrun {

struct ProcessOptions {
  std::vector<std::string> environment = {};  // "NAME=value", on top of this process' own
  int signal_of_parent = SIGTERM;             // what it gets when flowrun dies
  std::string host_name = {};                 // what it sees as that of the host; empty: its name
  int input = -1;                             // its stdin; -1: this process'
};

// Runs `command`, found as a shell would find it, in a process group of its own. Throws
// std::runtime_error.
pid_t start_process(const std::vector<std::string>& command, const ProcessOptions& options);

// Sends a signal to the ranks of this host whose process ids stand in the session and that have not
// ended; how many there are.
int signal_ranks(const std::string& session, int number);

// Whether the system lets this process give names to hosts.
bool may_rename_host();

}  // namespace flowrun
