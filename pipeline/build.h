// Stage bodies + a schedule → the Program of each rank.
#pragma once

#include "core/kernel.h"
#include "graph/program.h"
#include "pipeline/micro_batch.h"
#include "pipeline/schedule.h"

namespace flow::pipeline {

// Nodes carry their stage (graph::StageGuard); a stage's values lie on the stage's own ranks, and
// redistributions between stages become sends when the producer's action ends and receives when the
// consumer's begins. Externals as in graph::lower. The schedule must have as many stages and
// micro-batches as graph and plan, else InvalidArgument. Throws Unsupported for a redistribution
// inside a stage, of a partial value, or after the last micro-batch.
graph::Program build_program(const graph::Graph& graph, const MicroBatchPlan& plan,
                             const Schedule& schedule, int64_t rank, const KernelTable& kernels);

}  // namespace flow::pipeline
