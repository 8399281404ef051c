// The command line of flowrun.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "boxing/ranks/most_ranks.h"

namespace flowrun {

using flow::kMostRanks;

// One entry of --hosts.
struct Host {
  std::string name;
  int64_t ranks = 1;
};

struct Options {
  int64_t ranks = 1;  // on this node
  bool are_threads = false;
  bool binds = true;
  bool has_prefix = true;   // each line of output begins with its rank
  std::string output_dir;   // if set, each rank writes files here
  int64_t num_threads = 0;  // compute threads per rank; 0: cores / ranks
  int64_t limit_s = 0;      // for the whole job; 0: no limit
  int64_t max_restarts = 0;
  std::string report = "report.json";
  std::string timeline;  // a folder; empty: no timeline is recorded
  std::vector<std::string> command;

  // For several nodes.
  int64_t num_nodes = 1;
  int64_t node_rank = 0;
  std::string master_address = "127.0.0.1";
  int master_port = 29500;
  std::string secret_file;
  int64_t join_limit_s = 300;
  std::vector<Host> hosts;  // nodes that flowrun starts itself; the first is this one
  std::string rsh_agent = "ssh";
};

// Returns nullopt if flowrun must exit with `exit_code`: after --help, or after a wrong command
// line, which is explained on stderr.
std::optional<Options> parse_options(int argc, char** argv, int& exit_code);

}  // namespace flowrun
