// The order of a pipelined step: a schedule applied to a graph's stages and micro-batches.
#pragma once

#include "graph/program/order.h"
#include "pipeline/micro_batch.h"
#include "pipeline/schedule.h"

namespace flow::pipeline {

// Nodes carry their stage (graph::StageGuard); a stage's values are on the stage's own ranks. A
// rank does the actions of its stages in the order in which the schedule's simulation begins them.
// Messages between stages are sent when the sender's action ends and received when the receiver's
// begins, whatever layouts and placements they lead from and to. Throws InvalidArgument unless the
// schedule has the stages and micro-batches of graph and cut.
graph::Order make_order(const graph::Graph& graph, MicroBatchCut cut, const Schedule& schedule);

}  // namespace flow::pipeline
