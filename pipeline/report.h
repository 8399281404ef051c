// A pipeline for people.
#pragma once

#include <string>
#include <vector>

#include "graph/ir/ir.h"
#include "pipeline/micro_batch.h"
#include "pipeline/schedule.h"
#include "pipeline/simulate.h"

namespace flow::pipeline {

// What the actions of each stage cost for one micro-batch, predicted, in microseconds of one rank:
// the longer of arithmetic and memory traffic, node by node.
std::vector<StageCost> stage_costs(const graph::Graph& graph, const MicroBatchCut& cut);

// Micro-batches, schedule, the time that workers are predicted to wait, how many micro-batches each
// keeps, and what goes from stage to stage with the line that causes it.
std::string describe(const graph::Graph& graph, const MicroBatchCut& cut, const Schedule& schedule,
                     const std::string& name);

}  // namespace flow::pipeline
