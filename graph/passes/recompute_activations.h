// The pass that computes activations again in backward instead of keeping them.
#pragma once

#include <cstdint>

#include "graph/ir/ir.h"

namespace flow::graph {

// Backward of the layer after a gelu or silu reads its result, and the activation's own gradient
// reads its input. If both are large, only the input is kept: a copy of the node runs right before
// the first backward node that reads the result (one case of rematerialization: Chen et al. 2016,
// "Training deep nets with sublinear memory cost"). The gradient reads the same input soon after,
// so little more data moves. Returns how many nodes it added. Exact.
int64_t recompute_activations(Graph& graph);

// The fewest bytes of a result that the pass computes again: FLOW_RECOMPUTE_LEAST_BYTES.
int64_t least_recomputed_bytes();

}  // namespace flow::graph
