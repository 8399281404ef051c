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

// The process that starts another node. The secret goes through its stdin.
pid_t start_node(const Options& options, size_t number, int port, const std::string& secret);

// Ends those (that are > 0) that do not end by themselves.
void end_starters(const std::vector<pid_t>& starters);

}  // namespace flowrun
