// Checks that have to hold for a program read from a file before anything uses its memory.
#pragma once

#include <string_view>

#include "graph/ir/ir.h"
#include "graph/program/program.h"

namespace flow::graph {

// Throws BadFile unless every step has existing buffers and the inputs and outputs that its op
// needs, views are within the buffers that they show, buffers are within the arena, and the
// externals are the graph's tensors.
void check_program(const Program& program, const Graph& graph, std::string_view name);

}  // namespace flow::graph
