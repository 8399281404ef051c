// Stage bodies + a schedule → the Program of each rank.
#pragma once

#include "core/kernel.h"
#include "graph/program/program.h"
#include "pipeline/micro_batch.h"
#include "pipeline/schedule.h"

namespace flow::pipeline {

// Nodes carry their stage (graph::StageGuard); a stage's values lie on the stage's own ranks. A
// rank does the actions of its stages in the order in which the schedule's simulation begins them.
// Redistributions within a stage are collectives of its ranks; those between stages are messages,
// sent when the producer's action ends and received when the consumer's begins, whatever layouts
// and placements they lead from and to. What is the same at all times, or needs sums, moves once,
// before or after all actions. A send is waited for after the receiver's action has begun, so
// memory is what the schedule says. Externals as in graph::lower. Throws InvalidArgument unless the
// schedule has the stages and micro-batches of graph and plan.
graph::Program build_program(const graph::Graph& graph, const MicroBatchPlan& plan,
                             const Schedule& schedule, int64_t rank, const KernelTable& kernels);

}  // namespace flow::pipeline
