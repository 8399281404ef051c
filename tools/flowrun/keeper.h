// The keeper of one rank: a process between the launcher and the program. It passes the rank's
// output on, sees how the rank ends (exit code, signal, stopped) and writes that down, and takes
// the rank with it when the launcher dies.
#pragma once

#include <string>
#include <vector>

namespace flowrun {

struct KeeperOptions {
  std::string session;  // empty: FLOW_STATUS_DIR, which differs between nodes
  bool has_prefix = true;
  bool binds = true;
  std::string output_dir;
};

// The words flowrun hands to a launcher so that it comes back here as a keeper, and back.
std::vector<std::string> keeper_command(const std::string& flowrun, const KeeperOptions& options,
                                        const std::vector<std::string>& program);
bool is_keeper_command(int argc, char** argv);
// The keeper's exit code.
int run_keeper(int argc, char** argv);

}  // namespace flowrun
