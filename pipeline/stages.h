// Where the nodes of a micro-batch run: in which action of which stage, and which values pass from
// one stage to another.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "graph/ir/ir.h"
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

}  // namespace flow::pipeline
