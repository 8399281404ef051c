// The pass that removes nodes without an effect.
#pragma once

#include <cstdint>

#include "graph/ir/ir.h"

namespace flow::graph {

// Removes nodes whose outputs are neither used nor written back nor returned, and returns how many
// it removed. Exact.
int64_t eliminate_dead_nodes(Graph& graph);

}  // namespace flow::graph
