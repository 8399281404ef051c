// The pass that joins elementwise nodes.
#pragma once

#include <cstdint>

#include "graph/ir/ir.h"
#include "graph/program/order.h"

namespace flow::graph {

// Joins nodes that compute each element by itself, each of which reads a result of another, into
// nodes of fused_elementwise, which read and write memory once. The nodes of a group have one
// stage, phase, guard and layout; results that others read are outputs. The peak of the memory that
// values take, as the order of nodes implies it, does not rise. Returns how many nodes it removed.
// Exact.
int64_t fuse_elementwise(Graph& graph);

// The same for a step that is cut into micro-batches: joins nodes that run in each of them, whose
// results are all split along the same dim.
int64_t fuse_elementwise(Graph& graph, const MicroBatchCut& cut);

// The fewest elements of a result that the pass fuses: FLOW_FUSE_LEAST_ELEMENTS.
int64_t least_fused_elements();

}  // namespace flow::graph
