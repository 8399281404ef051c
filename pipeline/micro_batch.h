// Micro-batching as a placement axis in time: its "ranks" run one after another. Every value of a
// traced step gets S, B or P along it from the ops' ordinary signature tables.
#pragma once

#include <cstdint>

#include "graph/ir/ir.h"
#include "graph/program/order.h"

namespace flow::pipeline {

using graph::MicroBatchCut;
using graph::NodeTime;

// Graph inputs are S(0), but for scalars and the last `num_whole`, which are B as captures are.
// Cutting is by samples, so a signature that holds for one sample a rank holds for any parts.
//
// Transient nodes run for each micro-batch where all who read them do: addends are moved one by
// one, and what is the same at all times is made again, so that neither is kept.
//
// A value that is P along the axis and used by an op without a signature for it is summed first, so
// that op runs after all micro-batches. Where a micro-batch needs its result (the number of targets
// that a mean is divided by), the sum is computed from the whole batch before the first one; it
// must depend on inputs and what the step does not write. Throws Unsupported, naming op and user
// line, where it does not, and when an op mixes samples: it needs a split value and has no
// signature.
//
// Batch norm takes the statistics of each micro-batch, over all ranks: they are the micro-batch's
// own (is_per_micro_batch), and what it writes of them is written in the order of micro-batches. A
// single micro-batch is the batch: any op takes it, and no sum has to be waited for.
MicroBatchCut plan_micro_batches(const graph::Graph& graph, int64_t num_micro_batches,
                                 size_t num_whole = 0);

}  // namespace flow::pipeline
