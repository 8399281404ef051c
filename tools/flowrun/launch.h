// The commands and environments with which the processes of a job are started.
#pragma once

#include <string>
#include <vector>

#include "tools/flowrun/options.h"

namespace flowrun {

// The variable that tells a rank the columns of the terminal that shows its output
// (core/launcher.h).
inline constexpr const char* kTerminalWidth = "FLOW_TERMINAL_WIDTH";

class Nodes;

// The path of this program. It stays the same when a new build replaces the file while a job runs;
// the restarted ranks then start the new file.
const std::string& own_path();

// The path of a program, found as a shell would find it. Empty if there is none.
std::string find_program(const std::string& name);
// What to tell the user about a name that find_program does not find.
std::string why_not_found(const std::string& name);

// Variables for this node's ranks, in addition to flowrun's own environment: "NAME=value".
std::vector<std::string> environment_of(const Options& options, const std::string& session);

// The words of mpirun's command line before the program. `nodes` is null if all ranks are on this
// host.
std::vector<std::string> launcher_command(const Options& options, const std::string& session,
                                          const std::string& flowrun, const Nodes* nodes);

}  // namespace flowrun
