// Classes of ranks with the same program.
#pragma once

#include <cstdint>

#include "graph/program/program.h"

namespace flow::graph {

// Returns the meta of a program's buffer on `rank`, which is the program's or one of its class.
// Returns null if its part there has another shape.
MetaPtr local_meta_on(MetaPtr meta, int64_t rank);

// Returns whether `b` is the program `a` for b's rank.
bool same_program_up_to_rank(const Program& a, const Program& b);

}  // namespace flow::graph
