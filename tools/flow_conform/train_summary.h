// summary.json of a training through a graph.
#pragma once

#include <cstdint>
#include <string>

#include "nn/graph.h"

namespace flow::conform {

// The most a rank holds at once during a step, as its allocator hands it out: weights, optimizer
// state, the batch and what the step needs.
struct RankMemory {
  int64_t stated_peak_bytes = 0;  // known when the graph was compiled
  int64_t measured_peak_bytes = 0;
};

// Before a run, and with what it is about to be called with alive. `other_bytes` have no part in
// the training.
int64_t stated_peak_bytes(const nn::CompiledGraph& compiled, int64_t other_bytes);

// The text of summary.json. Every rank calls it.
std::string summary_of(const RankMemory& memory);

}  // namespace flow::conform
