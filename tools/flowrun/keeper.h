// The keeper of one rank: a process between the launcher and the program. It forwards the rank's
// output, records how the rank ends (exit code, signal, stop), and dies together with the launcher
// and the rank. It ends the processes that the rank has left behind.
#pragma once

#include <string>
#include <vector>

namespace flowrun {

struct KeeperOptions {
  std::string session;  // empty: use FLOW_STATUS_DIR, which differs between nodes
  bool has_prefix = true;
  bool binds = true;
  std::string output_dir;
  std::vector<int> ignored;  // signals that the rank ignores from its start, as flowrun does
};

// The command line with which a launcher starts flowrun as a keeper of `program`.
std::vector<std::string> keeper_command(const std::string& flowrun, const KeeperOptions& options,
                                        const std::vector<std::string>& program);
bool is_keeper_command(int argc, char** argv);
// Runs the keeper, and returns its exit code.
int run_keeper(int argc, char** argv);

}  // namespace flowrun
