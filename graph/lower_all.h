// The programs of all ranks, made on one.
#pragma once

#include <vector>

#include "core/kernel.h"
#include "graph/program.h"

namespace flow::graph {

// By rank. Each is what graph::lower gives on that rank, so far as the step's tensors are global;
// only the calling rank's own may run here.
std::vector<Program> lower_all(const Graph& graph, const KernelTable& kernels);

}  // namespace flow::graph
