// The passes that a graph's step goes through before it becomes programs.
#pragma once

#include <vector>

#include "graph/passes/pass.h"
#include "graph/passes/shard_captures.h"
#include "pipeline/micro_batching.h"

namespace flow::nn {

// What the list of passes depends on besides the traced step.
struct StepPasses {
  graph::PassSet set = graph::PassSet::kAll;
  std::vector<graph::ShardedCapture> shards = {};  // the parameters that ZeRO stage 3 shards
  bool gathers_once = false;                       // ZeroOptions::once_per_step
  pipeline::MicroBatching batching = {};
};

// All passes of the step, in the order in which they run.
std::vector<graph::Pass> list_passes(const StepPasses& step);

}  // namespace flow::nn
