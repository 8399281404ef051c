// Which values of a graph share memory.
#pragma once

#include "graph/ir/id_map.h"
#include "graph/ir/ir.h"

namespace flow::graph {

// For each value the first one in the memory that it may be in: what it is a view of, or what was
// there before a node wrote over it. A value with memory of its own is its own root.
IdMap<ValueId, ValueId> memory_roots(const Graph& graph);

}  // namespace flow::graph
