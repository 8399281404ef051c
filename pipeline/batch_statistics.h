// Normalisation by the statistics of a batch. Each micro-batch is normalised by its own statistics.
// The rules of the ops that do so are here; pipeline/micro_batch.h has the rules of all others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/ir/ir.h"
#include "pipeline/batch_cut.h"
#include "pipeline/micro_batch.h"

namespace flow::pipeline {

// True if the node computes or uses the moments of its batch. In a micro-batch, its input 0 is the
// micro-batch's own sums.
bool takes_own_sums(const graph::Node& node);

// True if the node computes the sums that a takes_own_sums() node reads.
bool makes_channel_sums(const graph::Node& node);

// Signatures that hold when each micro-batch is a separate batch. A B output then has a different
// value for each micro-batch.
std::vector<SbpSignature> own_batch_signatures(const graph::Node& node);

// True if the node updates state that a layer keeps of the batches it sees. It runs once for each
// micro-batch, in order.
bool writes_in_turn(const graph::Node& node);

// The node as it is in micro-batch m: counts of samples are the micro-batch's.
graph::Node in_micro_batch(const graph::Node& node, const BatchCut& cut, int64_t m);

// The nodes, one for each call of batch norm, that normalise a micro-batch by its own statistics
// and not by those of the whole batch.
std::vector<size_t> batch_norms_of_parts(const graph::Graph& graph, const MicroBatchCut& cut);

// The number of elements of one channel in micro-batch m, for a node of a batch norm.
int64_t channel_elements(const graph::Graph& graph, const graph::Node& node, const BatchCut& cut,
                         int64_t m);

// "batch_norm in module 'features.0.1' at main.cpp:12".
std::string name_of_batch_norm(const graph::Node& node);

// Throws Unsupported, naming module and line, if results would differ from those of the whole
// batch.
void require_exact(const graph::Graph& graph, const MicroBatchCut& cut);

}  // namespace flow::pipeline
