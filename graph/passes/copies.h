// The pass that removes copies of gradients.
#pragma once

#include <cstdint>

#include "graph/ir/ir.h"

namespace flow::graph {

// Removes the copies that backward makes of gradients which might be shared.
int64_t remove_gradient_copies(Graph& graph);

}  // namespace flow::graph
