// flow-conform box: redistributes shards given in a file.
#pragma once

#include <string>

#include "tools/flow_conform/op_command.h"

namespace flow::conform {

struct BoxOptions {
  RunOptions run;
  std::string table;
  std::string in;
  std::string out;
};

// Every rank of the world calls it; rank 0 writes.
ExitCode run_boxing(const BoxOptions& options);

}  // namespace flow::conform
