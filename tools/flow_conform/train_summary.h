// summary.json of a training through a graph.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/run/executor.h"
#include "nn/graph.h"
#include "tools/flow_conform/train_layout.h"

namespace flow::conform {

// What one rank knows of a graph that ran. Bytes are the most that its allocator hands out during a
// step: weights, optimizer state, the batch and what the step needs.
struct RunRecord {
  int64_t stated_peak_bytes = 0;  // known when the graph was compiled
  int64_t measured_peak_bytes = 0;
  double predicted_bubble = 0;
  std::vector<graph::RunTimes> runs = {};
};

// Before a run, and with what it is about to be called with alive. `other_bytes` have no part in
// the training.
int64_t stated_peak_bytes(const nn::CompiledGraph& compiled, int64_t other_bytes);

// The share of the workers' time in which they wait for each other, by the costs of the stages; 0
// where there is one stage or one batch.
double predicted_bubble(const nn::CompiledGraph& compiled, const Pipelining& pipelining);

// The text of summary.json. Every rank calls it.
std::string summary_of(const RunRecord& record);

}  // namespace flow::conform
