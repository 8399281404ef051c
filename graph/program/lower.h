// Turns a graph and an order into the programs of ranks.
#pragma once

#include <cstdint>

#include "core/kernel.h"
#include "graph/ir/ir.h"
#include "graph/program/order.h"
#include "graph/program/program.h"

namespace flow::graph {

// Makes the program of `rank`: nodes that run once before the micro-batches, the actions in which
// the rank takes part, and nodes that run afterwards. Values that are the same for all
// micro-batches, or need sums over them, are moved once, before or after all actions.
// Redistributions within a block are collectives of its ranks; those between blocks are messages. A
// send is waited for after the receiver's action has begun, so memory follows from the order.
// Externals: graph.inputs, graph.captures, graph.outputs.
Program lower(const Graph& graph, const Order& order, int64_t rank, const KernelTable& kernels);

// Makes the programs of all ranks; ranks whose programs are equal share one.
Programs lower_all(const Graph& graph, const Order& order);

// Makes only the calling rank's program, for steps whose tensors are all local.
Programs lower_here(const Graph& graph, const Order& order);

}  // namespace flow::graph
