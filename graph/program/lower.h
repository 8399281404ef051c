// From a graph to the programs of ranks.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/kernel.h"
#include "graph/ir/ir.h"
#include "graph/program/program.h"

namespace flow::graph {

// One pass through the graph on `rank`. Externals: graph.inputs, graph.captures, graph.outputs.
Program lower(const Graph& graph, int64_t rank, const KernelTable& kernels);

// How a step becomes the program of a rank.
struct Lowering {
  // What beside the graph the programs depend on.
  std::string name = {};
  // Null: graph::lower.
  std::function<Program(const Graph& graph, int64_t rank)> make = nullptr;
};

// Each is what the lowering gives on that rank.
Programs lower_all(const Graph& graph, const Lowering& lowering);

// The calling rank's alone, for steps whose tensors are all local.
Programs lower_here(const Graph& graph, const Lowering& lowering);

}  // namespace flow::graph
