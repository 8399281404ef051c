// Ops that take statistics of their batch (OpDef::micro_batch), such as those of batch norm. Each
// micro-batch has its own statistics. pipeline/micro_batch.h has the rules of all other ops.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/ir/ir.h"
#include "pipeline/batch_cut.h"
#include "pipeline/micro_batch.h"

namespace flow::pipeline {

// The node as it is in micro-batch m: counts of elements are the micro-batch's.
graph::Node in_micro_batch(const graph::Node& node, const BatchCut& cut, int64_t m);

// The nodes, one for each call of the user's function, that use the statistics of each micro-batch
// and not those of the whole batch.
std::vector<size_t> nodes_with_own_statistics(const graph::Graph& graph, const MicroBatchCut& cut);

// The number of elements from which such a node's statistics of one channel are computed in
// micro-batch m.
int64_t elements_of_statistics(const graph::Graph& graph, const graph::Node& node,
                               const BatchCut& cut, int64_t m);

// "batch_norm in module 'features.0.1' at main.cpp:12", for such a node.
std::string name_of_statistics(const graph::Node& node);

// Throws Unsupported, naming module and line, if results would differ from those of the whole
// batch.
void require_exact(const graph::Graph& graph, const MicroBatchCut& cut);

}  // namespace flow::pipeline
