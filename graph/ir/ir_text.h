// The text form of a graph, both ways.
#pragma once

#include <string>
#include <string_view>

#include "graph/ir/ir.h"

namespace flow::graph {

// One line per node:  %5 = matmul(%0, %2) {…} : (4, 8) float32 [S(0) on cpu:(0, 1)] @F0
// main.cpp:12; a random op ends in "@F0 draw 2 main.cpp:12", a transient node in "@F0 transient
// main.cpp:12", a guarded one in "@U0 if 1 main.cpp:12", and one in a module in "@F0 in fc1
// main.cpp:12".
std::string to_string(const Graph& graph);
// Inverse of to_string; `ops` resolves names. Throws InvalidArgument naming the line.
Graph parse_graph(std::string_view text, const OpTable& ops);

}  // namespace flow::graph
