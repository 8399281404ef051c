// Starts the commands of a job.
#pragma once

#include <csignal>
#include <string>
#include <vector>

#include <sys/types.h>

namespace flowrun {

struct ProcessOptions {
  std::vector<std::string> environment = {};  // "NAME=value", in addition to this process's
  int signal_of_parent = SIGTERM;             // the signal it receives when flowrun dies
  std::string host_name = {};                 // the host name that it sees; empty: the real one
  int input = -1;                             // its stdin; -1: that of this process
};

// Starts `command`, found as a shell would find it, in a new process group. Throws
// std::runtime_error.
pid_t start_process(const std::vector<std::string>& command, const ProcessOptions& options);

// Sends a signal to the ranks of this host that have not ended; their process ids are in the
// session's folder. Returns the number of these ranks.
int signal_ranks(const std::string& session, int number);

// The children of this process.
std::vector<pid_t> find_children();

// Kills the children of this process other than `spared`, and theirs, which become children of this
// process if it is a subreaper (PR_SET_CHILD_SUBREAPER). Returns when all that it may kill are
// gone.
void kill_children(const std::vector<pid_t>& spared);

// True if the system allows this process to change the host name that its children see.
bool may_rename_host();

}  // namespace flowrun
