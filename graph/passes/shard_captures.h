// Captured tensors that lie cut over ranks and are gathered where a step uses them: parameters of
// ZeRO stage 3 (Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training Trillion
// Parameter Models").
#pragma once

#include <cstddef>
#include <span>

#include "graph/ir/ir.h"

namespace flow::graph {

// A capture of a step that was traced as if it lay whole, and how it is to lie.
struct ShardedCapture {
  size_t capture = 0;
  NdSbp sbp;
};

struct ShardOptions {
  // Gathered once, before the first use, and kept until the last.
  bool once = false;
  // Uses in different phases and stages have gathers of their own: the step is cut into
  // micro-batches, whose forwards and backwards take turns.
  bool by_phase = false;
};

// Makes the captures lie as given; the step computes the same values. What is only a view or a cast
// of such a tensor is taken again from each gather, and casts to narrower types go before it. A
// gathered tensor is kept for its next use if the others that are used in between take at most as
// many bytes as the largest of all; so those that are whole at any time, but for the inputs of one
// op, take at most twice as many. An update that gathers what it has computed in parts keeps the
// parts.
void shard_captures(Graph& graph, std::span<const ShardedCapture> shards,
                    const ShardOptions& options);

}  // namespace flow::graph
