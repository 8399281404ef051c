// The pass that lets optimizers update parameters during backward.
#pragma once

#include <cstdint>

#include "graph/ir/graph_uses.h"
#include "graph/ir/ir.h"

namespace flow::graph {

// Moves the updates of optimizers to the first place at which their inputs exist and nothing reads
// the old values any more, but never before a node of forward or one that has an effect, because
// these may throw. The gradient is then still in a cache, and its memory is free for the rest of
// backward. On CUDA devices small updates wait for others that run in the same launch. Updates that
// wait for a sum over ranks stay, so that the sums can form buckets. Returns how many updates were
// moved.
int64_t move_updates(Graph& graph);

}  // namespace flow::graph
