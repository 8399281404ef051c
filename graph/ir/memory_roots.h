// Which values of a graph share memory.
#pragma once

#include <unordered_set>

#include "graph/ir/id_map.h"
#include "graph/ir/ir.h"

namespace flow::graph {

// For each value the first one in the memory that it may be in: what it is a view of, or what was
// there before a node wrote over it. A value with memory of its own is its own root.
IdMap<ValueId, ValueId> memory_roots(const Graph& graph);

// The roots of what nodes write in place, through a view or not.
std::unordered_set<ValueId> written_roots(const Graph& graph);

}  // namespace flow::graph
