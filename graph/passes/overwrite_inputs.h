// The pass that lets elementwise nodes write their results over inputs.
#pragma once

#include <cstdint>

#include "graph/ir/ir.h"

namespace flow::graph {

// Of an elementwise node on the CPU, marks an input that the step makes and that nothing reads
// afterwards (Node::overwrites). The result is then written to lines that are in a cache. Returns
// how many nodes it marked. Exact.
int64_t overwrite_inputs(Graph& graph);

}  // namespace flow::graph
