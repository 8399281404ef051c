// Layouts of values and the pass that joins redistributions.
#pragma once

#include <cstdint>

#include "boxing/layout.h"
#include "graph/ir/ir.h"

namespace flow::graph {

// The layout in which ranks hold a global value.
boxing::Layout layout_of(const Value& value);

// Whether the node moves data between ranks: a redistribution, or a mean over ranks.
bool is_transfer(const Node& node);

// Joins redistributions whose result is only redistributed again, where the direct way is
// predicted to be as fast; removes those that lead back to a layout in which the value exists.
int64_t join_redistributions(Graph& graph);

}  // namespace flow::graph
