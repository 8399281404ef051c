// Micro-batching as a pass: cuts a step into micro-batches and orders the actions of its stages.
#pragma once

#include <cstddef>
#include <cstdint>

#include "graph/passes/pass.h"
#include "pipeline/micro_batch.h"
#include "pipeline/schedule.h"

namespace flow::pipeline {

// What a step's micro-batching depends on besides its graph.
struct MicroBatching {
  int64_t micro_batches = 1;
  ScheduleRule rule = {};
  size_t num_arguments = 0;     // the first inputs, which are batches; the others are not cut
  bool requires_exact = false;  // refuses a step whose results differ from those of the whole batch

  // False for a graph of one stage and one micro-batch, which runs in plain order. Requires settled
  // stages, as cut() and schedule() do.
  bool is_needed(const graph::Graph& graph) const;

  MicroBatchCut cut(const graph::Graph& graph) const;
  Schedule schedule(const graph::Graph& graph) const;
};

// The last pass of a step: sets its order. Counts the nodes that run for each micro-batch.
graph::Pass micro_batching_pass(const MicroBatching& batching);

}  // namespace flow::pipeline
