// The pass that computes equal values once.
#pragma once

#include <cstdint>

#include "graph/ir/ir.h"

namespace flow::graph {

// Replaces what an earlier node of the same phase and stage has computed from the same inputs:
// constants, views, casts, redistributions. Draws of random numbers, writes in place and ops with
// an effect stay.
int64_t merge_common_subexpressions(Graph& graph);

}  // namespace flow::graph
