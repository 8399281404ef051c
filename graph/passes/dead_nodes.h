// The pass that removes nodes that change nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/ir/ir.h"

namespace flow::graph {

// Removes nodes whose outputs are neither used nor written back nor returned, except those of ops
// with an effect (OpDef::has_effect), and returns how many it removed. Exact.
int64_t eliminate_dead_nodes(Graph& graph);

// Removes the nodes that are marked, and renumbers the values if there are any. Returns how many it
// removed. Requires: nothing that stays reads a value of theirs.
int64_t remove_nodes(Graph& graph, const std::vector<bool>& is_removed);

// Removes values that no node makes, and gives the others new ids in the order in which they are
// defined. Requires: no node or result reads a value that is not made.
void renumber_values(Graph& graph);

}  // namespace flow::graph
