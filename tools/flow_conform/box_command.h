// flow-conform box redistributes shards that are given in a file.
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

// Every rank of the world must call this; rank 0 writes the results.
ExitCode run_boxing(const BoxOptions& options);

}  // namespace flow::conform
