// Nodes that flowrun starts by itself (--hosts): a flowrun on each other host, by way of ssh.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "tools/flowrun/options.h"

namespace flowrun {

// This host's address that the others can reach. Throws JobError where the first of --hosts is not
// this host.
std::string address_for(const std::vector<Host>& hosts);

// The processes that start the other nodes, in order. The secret goes through their stdin.
std::vector<pid_t> start_nodes(const Options& options, int port, const std::string& secret);

// Ends them where they have not ended by themselves.
void end_starters(const std::vector<pid_t>& starters);

}  // namespace flowrun
