// Normalisation by the statistics of a batch: in micro-batches each takes its own. What belongs to
// the ops that do so is here; pipeline/micro_batch.h has the rules for all others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/ir/ir.h"
#include "pipeline/batch_cut.h"
#include "pipeline/micro_batch.h"

namespace flow::pipeline {

// Whether the node makes or uses moments of its batch: in micro-batches it takes the sums, input 0,
// of its own.
bool takes_own_sums(const graph::Node& node);

// Whether the sums a node makes of its inputs are what takes_own_sums() nodes are for.
bool makes_channel_sums(const graph::Node& node);

// Signatures that hold when each micro-batch is a batch of its own; B outputs are the
// micro-batch's.
std::vector<SbpSignature> own_batch_signatures(const graph::Node& node);

// Whether the node writes what layers keep of the batches they see: once for each, in order.
bool writes_in_turn(const graph::Node& node);

// The node as micro-batch m has it: counts are those of its samples.
graph::Node in_micro_batch(const graph::Node& node, const BatchCut& cut, int64_t m);

// The nodes, one for each call of batch norm, that normalise a micro-batch by its own statistics
// and not those of the batch.
std::vector<size_t> batch_norms_of_parts(const graph::Graph& graph, const MicroBatchCut& cut);

// Of the node of a batch norm: elements of a channel in micro-batch m.
int64_t channel_elements(const graph::Graph& graph, const graph::Node& node, const BatchCut& cut,
                         int64_t m);

// "batch_norm in module 'features.0.1' at main.cpp:12".
std::string name_of_batch_norm(const graph::Node& node);

// Throws Unsupported, naming module and line, where results would not be those of the whole batch.
void require_exact(const graph::Graph& graph, const MicroBatchCut& cut);

}  // namespace flow::pipeline
