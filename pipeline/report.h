// The text and predicted costs of a pipeline, for people.
#pragma once

#include <string>
#include <vector>

#include "graph/ir/ir.h"
#include "pipeline/micro_batch.h"
#include "pipeline/schedule.h"
#include "pipeline/simulate.h"

namespace flow::pipeline {

// The predicted cost of each stage's actions for one micro-batch, in microseconds of one rank: for
// each node the longer of arithmetic and memory traffic.
std::vector<StageCost> stage_costs(const graph::Graph& graph, const MicroBatchCut& cut);

// Micro-batches, schedule, the share of time that workers are predicted to wait, how many
// micro-batches each keeps, and each transfer between stages with the line that causes it.
std::string describe(const graph::Graph& graph, const MicroBatchCut& cut, const Schedule& schedule,
                     const std::string& name);

}  // namespace flow::pipeline
