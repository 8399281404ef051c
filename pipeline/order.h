// The order of a pipelined step: a schedule applied to a graph's stages and micro-batches. It says
// in which action of which stage the nodes of a micro-batch run, and which values pass from one
// stage to another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "graph/ir/ir.h"
#include "graph/passes/pass.h"
#include "graph/program/order.h"
#include "pipeline/generators.h"
#include "pipeline/micro_batch.h"
#include "pipeline/schedule.h"

namespace flow::pipeline {

// One stage's F, B or W, of any micro-batch. Without a stage: after all actions.
struct Slot {
  int64_t stage = -1;
  ActionKind kind = ActionKind::kForward;
  friend bool operator==(const Slot&, const Slot&) = default;
};

// A redistribution from one stage's ranks to another's, sent when one slot ends and received when
// the other begins.
struct Edge {
  size_t node = 0;
  Slot from;
  Slot to;
};

struct StagePlan {
  int64_t num_stages = 1;
  std::vector<Slot> slots;       // by node that runs for each micro-batch; of an edge, the sender's
  std::vector<Edge> edges;       // in order of nodes
  std::vector<int64_t> edge_of;  // by node, -1: none
  std::vector<std::set<int64_t>> ranks;  // by stage; empty if all tensors are local
};

// Nodes carry their stage. If weight gradients are scheduled separately, a backward node is W when
// it computes an addend of a sum over micro-batches, or a view for one. A redistribution among the
// ranks of the stage that computes its input runs there; any other is an edge. Throws Unsupported,
// naming op and line, if an action needs a value of a later action.
StagePlan plan_stages(const graph::Graph& graph, const MicroBatchCut& cut, bool has_weights);

// Nodes carry their stage (graph::StageGuard); a stage's values are on the stage's own ranks. A
// rank does the actions of its stages in the order in which the schedule's simulation begins them.
// Messages between stages are sent when the sender's action ends and have been received when the
// receiver's begins, whatever layouts and placements they lead from and to. Throws InvalidArgument
// unless the schedule has the stages and micro-batches of graph and cut.
graph::Order make_order(const graph::Graph& graph, MicroBatchCut cut, const Schedule& schedule);

// The schedule as its ranks carry it out: stages that share a rank belong to one worker, which does
// their actions in the order of make_order().
Schedule schedule_on_ranks(const Schedule& schedule, const StagePlan& stages);

// What a step's micro-batching depends on besides its graph.
struct MicroBatching {
  int64_t micro_batches = 1;
  ScheduleRule rule = {};
  size_t num_arguments = 0;     // the first inputs, which are batches; the others are not cut
  bool requires_exact = false;  // refuses a step whose results differ from those of the whole batch
  bool receives_early = true;   // graph::Order::receives_early

  // False for a graph of one stage and one micro-batch, which runs in plain order. Requires settled
  // stages, as cut() and schedule() do.
  bool is_needed(const graph::Graph& graph) const;

  MicroBatchCut cut(const graph::Graph& graph) const;
  Schedule schedule(const graph::Graph& graph) const;
};

// The last pass of a step: sets its order. Counts the nodes that run for each micro-batch.
graph::Pass micro_batching_pass(const MicroBatching& batching);

}  // namespace flow::pipeline
