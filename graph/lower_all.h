// The programs of all ranks, made on one.
#pragma once

#include <functional>
#include <vector>

#include "graph/program.h"

namespace flow::graph {

// How a step becomes the program of a rank; graph::lower or what follows a schedule.
using Lowering = std::function<Program(const Graph& graph, int64_t rank)>;

// By rank. Each is what the lowering gives on that rank, so far as the step's tensors are global;
// only the calling rank's own may run here.
std::vector<Program> lower_all(const Graph& graph, const Lowering& lowering);

}  // namespace flow::graph
