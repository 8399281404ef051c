// Classes of ranks with the same program.
#pragma once

#include <cstdint>

#include "graph/ir/ir.h"
#include "graph/program/program.h"

namespace flow::graph {

// Returns the meta of a program's buffer on `rank`, which is the program's or one of its class.
// Returns null if its part there has another shape.
MetaPtr local_meta_on(MetaPtr meta, int64_t rank);

// Returns whether `b` is the program `a` for b's rank.
bool same_program_up_to_rank(const Program& a, const Program& b);

// Returns whether the program of a graph's step may run: local tensors that are parts of global
// ones have, on its rank, the shapes that they have in the graph. Otherwise the rank has a graph of
// its own, and this program only says what it communicates.
bool may_run(const Program& program, const Graph& graph);

}  // namespace flow::graph
