// The nodes of --hosts: flowrun starts a flowrun on each other host through ssh.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "tools/flowrun/options.h"

namespace flowrun {

// Throws JobError if the first of --hosts is not this host.
void check_first(const std::vector<Host>& hosts);

// The address at which the other hosts, of which there is at least one, can reach this host.
std::string address_for(const std::vector<Host>& hosts);

// Returns the process that starts node `number`. The process receives the secret through stdin.
pid_t start_node(const Options& options, size_t number, int port, const std::string& secret);

// Waits for the processes, and kills those that do not end by themselves. Ignores entries <= 0.
void end_starters(const std::vector<pid_t>& starters);

}  // namespace flowrun
