// flow-conform train: trains a model from weights and data given in files.
#pragma once

#include <string>

#include "tools/flow_conform/op_command.h"

namespace flow::conform {

struct TrainOptions {
  RunOptions run = {};
  std::string spec = {};
  std::string folder = {};    // of the results
  std::string layout = {};    // "dp2+tp2", "ddp2"; empty: one rank
  std::string schedule = {};  // of a pipeline
  int64_t micro_batches = 0;
  int64_t steps = -1;  // as the spec says
  bool in_graph = false;
  std::string timeline = {};  // a file for one of some steps of a graph
};

// Every rank of the world calls it; rank 0 writes.
ExitCode run_training(const TrainOptions& options);

}  // namespace flow::conform
