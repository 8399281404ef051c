// The pass that joins activations that backward computes again with their gradients.
#pragma once

#include <cstdint>

#include "graph/ir/ir.h"

namespace flow::graph {

// recompute_activations has left a gelu or silu in backward, and its gradient reads the same input.
// Both become one node, which computes their common exponentials once and writes both results over
// its inputs, if nothing else reads these later. Returns how many pairs it joined. Exact.
int64_t fuse_activation_grad(Graph& graph);

}  // namespace flow::graph
