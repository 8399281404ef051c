// The pass that removes pairs of nodes that undo each other.
#pragma once

#include <cstdint>

#include "graph/ir/ir.h"

namespace flow::graph {

// Removes pairs that undo each other: a permutation and its inverse, a cast to a wider dtype and
// back, a reshape of a reshape.
int64_t remove_identities(Graph& graph);

}  // namespace flow::graph
