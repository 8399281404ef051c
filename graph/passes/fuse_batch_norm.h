// The pass that joins batch norm with the activation after it.
#pragma once

#include <cstdint>

#include "graph/ir/ir.h"

namespace flow::graph {

// Joins a batch_norm with the hardtanh (ReLU6) that alone reads its result, and their gradients.
// The gradient is computed from the result of hardtanh, which is strictly between the bounds where
// its input is, so the result of batch_norm is not kept. Returns how many nodes it removed. Exact.
int64_t fuse_batch_norm(Graph& graph);

}  // namespace flow::graph
