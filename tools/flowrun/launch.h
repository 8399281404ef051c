// What the processes of a job are started with.
#pragma once

#include <string>
#include <vector>

#include "tools/flowrun/options.h"

namespace flowrun {

class Nodes;

// As a shell would find it; empty when there is none.
std::string find_program(const std::string& name);

// Of this node's ranks, on top of flowrun's own: "NAME=value".
std::vector<std::string> environment_of(const Options& options, const std::string& session);

// The words of mpirun before the program. `nodes`: null where all ranks are on this host.
std::vector<std::string> launcher_command(const Options& options, const std::string& session,
                                          const std::string& flowrun, const Nodes* nodes);

}  // namespace flowrun
