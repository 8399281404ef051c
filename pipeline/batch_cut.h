// The division of a batch among micro-batches, as the batch's layout suggests it.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/program/batch_parts.h"

namespace flow::pipeline {

using graph::BatchCut;
using graph::Piece;

// A sample is a row of each of `inputs`, or several rows of an input that has more of them than
// another. The shards are those of the input that is sharded finest, as it is passed or as the step
// redistributes it. Throws InvalidArgument when there are fewer samples than micro-batches.
BatchCut cut_batch(const graph::Graph& graph, const std::vector<graph::ValueId>& inputs,
                   int64_t num_micro_batches);

// Cuts the batch at the shards of `value`, whose dim `dim` holds the samples, if there are more of
// them than runs.
void refine_cut(const graph::Value& value, int64_t dim, BatchCut& cut);

}  // namespace flow::pipeline
