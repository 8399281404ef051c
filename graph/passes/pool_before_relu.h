// The pass that lets maximum pooling run before relu.
#pragma once

#include <cstdint>

#include "graph/ir/ir.h"

namespace flow::graph {

// relu keeps the order of elements, so the maximum of relu(x) is relu of the maximum of x. If only
// a max_pool reads the result of a relu, the pooling runs first, and relu and its gradient then
// work on the smaller result. Windows must have an element. Returns how many relus it moved. The
// results are equal; where x has negative zeros, the sign of a zero may differ.
int64_t pool_before_relu(Graph& graph);

}  // namespace flow::graph
