// Lets redistributions run while the step computes.
#pragma once

#include <cstdint>

#include "graph/ir/ir.h"
#include "graph/passes/overlap_options.h"
#include "graph/passes/pass.h"

namespace flow::graph {

// Moves redistributions on one placement forward, so that they start as soon as their input exists,
// and says which of them run in the background (Node::transfer_start). Sums of gradients over ranks
// are divided into buckets. Of the others, those run in the background for which the predicted work
// until their first use hides enough of the transfer. One that gathers starts only so early that
// the work hides it twice, because its result takes more memory than its input. Returns how many
// nodes it changed.
int64_t overlap_redistributions(Graph& graph, const OverlapOptions& options = {});

Pass overlap_pass(const OverlapOptions& options);

}  // namespace flow::graph
