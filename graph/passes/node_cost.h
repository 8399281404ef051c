// The predicted time of a node, for passes and pipelines that compare one with another.
#pragma once

#include "graph/ir/ir.h"

namespace flow::graph {

// The bytes of the logical tensor.
int64_t bytes_of(const Value& value);

// Microseconds for the whole batch on each rank of the placement, from the arithmetic and the
// memory traffic of the op; 0 for a view. Pure, so all ranks predict the same.
double predicted_us(const Graph& graph, const Node& node);

}  // namespace flow::graph
