// A plan in the language of Graphviz.
#pragma once

#include <cstdint>
#include <string>

#include "graph/ir/ir.h"
#include "graph/program/program.h"

namespace flow::tools {

// The nodes after the passes by stage; edges are values, with shape, dtype and layout.
std::string dot_of(const graph::Graph& graph);

// The steps of a program by block; edges lead from the step that last wrote a buffer to those that
// read it, with the shape that the rank holds. Dashed edges stay within memory that a step writes
// in place.
std::string dot_of(const graph::Program& program);

}  // namespace flow::tools
