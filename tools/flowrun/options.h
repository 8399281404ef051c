// The command line of flowrun.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace flowrun {

struct Options {
  int64_t ranks = 1;
  bool are_threads = false;
  bool binds = true;
  bool has_prefix = true;   // each line of output names its rank
  std::string output_dir;   // or a file per rank
  int64_t num_threads = 0;  // compute threads of a rank; 0: cores / ranks
  int64_t limit_s = 0;      // of the whole job; 0: none
  std::string report = "report.json";
  std::vector<std::string> command;
};

// Nothing when the program is to end with `exit_code` (help, or a wrong command line, which is
// explained on stderr).
std::optional<Options> parse_options(int argc, char** argv, int& exit_code);

}  // namespace flowrun
