// The pass that gives every node its pipeline stage.
#pragma once

#include <cstdint>

#include "graph/ir/ir.h"

namespace flow::graph {

// Gives every node its pipeline stage. A node traced outside any stage takes the largest stage of
// its inputs; one without a staged input (a constant, the seed of backward) takes that of its first
// user, or 0. A value that comes back from a later stage does not take backward nodes there, and a
// backward node moves to the earliest stage that makes one of its gradients on its placement.
int64_t settle_stages(Graph& graph);

}  // namespace flow::graph
