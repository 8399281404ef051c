// flow-conform train trains a model from weights and data in files.
#pragma once

#include <string>

#include "tools/flow_conform/op_command.h"

namespace flow::conform {

struct TrainOptions {
  RunOptions run = {};
  std::string spec = {};
  std::string folder = {};    // for the results
  std::string layout = {};    // "dp2+tp2", "ddp2"; empty: one rank
  std::string schedule = {};  // of the pipeline
  int64_t micro_batches = 0;
  int64_t steps = -1;  // -1: the number in the spec
  bool in_graph = false;
  std::string timeline = {};  // if set, the file for the timeline of some steps of a graph
};

// Every rank of the world must call this; rank 0 writes the results.
ExitCode run_training(const TrainOptions& options);

}  // namespace flow::conform
