// Micro-batching as a placement axis in time: its "ranks" run one after another. Every value of a
// traced step gets S, B or P along it from the ops' ordinary signature tables.
#pragma once

#include <cstdint>

#include "graph/ir/ir.h"
#include "graph/program/order.h"

namespace flow::pipeline {

using graph::MicroBatchCut;
using graph::NodeTime;

// Finds the layouts of a step's values along the micro-batch axis, and when each node runs.
//
// Graph inputs are S(0), except for scalars and the last `num_whole` inputs, which are B like
// captures. The batch is cut by samples, so a signature that holds for one sample a rank holds for
// any parts.
//
// Where several signatures fit, a node takes one whose kernel does not need the positions of its
// rows in the batch. Kernels of the other signatures get the positions (MicroBatchCut).
//
// A transient node runs for each micro-batch if all its readers do: addends are moved one by one,
// and a value that is the same for all micro-batches is computed again, so that neither is kept.
//
// An op without a signature for a P value reads the sum over all micro-batches, so it runs after
// them. Where a micro-batch needs the op's result (the number of targets that a mean is divided
// by), the sum is computed from the whole batch before the first micro-batch; it must depend only
// on inputs and on captures that the step does not write. Throws Unsupported, naming op and user
// line, if it depends on more, and if an op mixes samples: it reads a split value and has no
// signature.
//
// Batch norm takes the statistics of each micro-batch, over all ranks: each micro-batch has its own
// (is_per_micro_batch), and running statistics are updated in the order of micro-batches. A single
// micro-batch is the batch: any op takes it, and its sums are complete.
MicroBatchCut plan_micro_batches(const graph::Graph& graph, int64_t num_micro_batches,
                                 size_t num_whole = 0);

}  // namespace flow::pipeline
