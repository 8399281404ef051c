// Writes summary.json for a training that runs as a graph.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/run/executor.h"
#include "nn/graph.h"
#include "tools/flow_conform/train_layout.h"

namespace flow::conform {

// One rank's statistics of a graph that ran. Bytes are the most that the rank's allocator hands out
// during a step: weights, optimizer state, the batch and the memory that the step needs.
struct RunRecord {
  int64_t stated_peak_bytes = 0;  // predicted when the graph was compiled
  int64_t measured_peak_bytes = 0;
  double predicted_bubble = 0;
  std::vector<graph::RunTimes> runs = {};
};

// Call this before a run, while the arguments of the run exist. `other_bytes` are not part of the
// training.
int64_t stated_peak_bytes(const nn::CompiledGraph& compiled, int64_t other_bytes);

// The predicted share of time in which the workers wait for each other, from the costs of the
// stages. 0 if there is one stage or one batch.
double predicted_bubble(const nn::CompiledGraph& compiled, const Pipelining& pipelining);

// Returns the text of summary.json. Every rank must call it.
std::string summary_of(const RunRecord& record);

}  // namespace flow::conform
