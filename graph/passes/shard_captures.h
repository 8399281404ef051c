// Captured tensors that are sharded over ranks and gathered where a step uses them: parameters of
// ZeRO stage 3 (Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training Trillion
// Parameter Models").
#pragma once

#include <cstddef>
#include <span>

#include "graph/ir/ir.h"

namespace flow::graph {

// A capture of a step, traced as if every rank had all of it, and the layout that it has instead.
struct ShardedCapture {
  size_t capture = 0;
  NdSbp sbp;
};

struct ShardOptions {
  // Gathers each tensor once, before its first use, and keeps it until the last.
  bool once = false;
  // Gathers for each phase and stage separately: for a step that is cut into micro-batches, whose
  // forwards and backwards take turns.
  bool by_phase = false;
};

// Gives the captures their layouts; the step computes the same values. Views and casts of such a
// tensor are made again from each gather, and casts to narrower types go before it. A gathered
// tensor is kept for its next use if the sharded tensors that are used in between take at most as
// many bytes as the largest of all; so the gathered tensors that exist at any time, except for the
// inputs of one op, take at most twice as many. An update that gathers its sharded result keeps the
// shards. Returns how many captures it sharded.
int64_t shard_captures(Graph& graph, std::span<const ShardedCapture> shards,
                       const ShardOptions& options);

}  // namespace flow::graph
