#include "pipeline/micro_batching.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "pipeline/batch_statistics.h"
#include "pipeline/order.h"

namespace flow::pipeline {

namespace {

using graph::Graph;

int64_t num_stages_of(const Graph& graph) {
  int64_t num_stages = 1;
  for (const graph::Node& node : graph.nodes)
    num_stages = std::max(num_stages, node.stage + 1);
  return num_stages;
}

}  // namespace

bool MicroBatching::is_needed(const Graph& graph) const {
  return micro_batches > 1 || num_stages_of(graph) > 1;
}

MicroBatchCut MicroBatching::cut(const Graph& graph) const {
  return plan_micro_batches(graph, micro_batches, graph.inputs.size() - num_arguments);
}

Schedule MicroBatching::schedule(const Graph& graph) const {
  return make_schedule(rule, num_stages_of(graph), micro_batches);
}

graph::Pass micro_batching_pass(const MicroBatching& batching) {
  const auto run = [batching](graph::UnloweredStep& step) -> int64_t {
    if (!batching.is_needed(step.graph)) return 0;
    MicroBatchCut cut = batching.cut(step.graph);
    if (batching.requires_exact) require_exact(step.graph, cut);
    const auto count = std::count(cut.node_time.begin(), cut.node_time.end(), NodeTime::kEach);
    step.order = make_order(step.graph, std::move(cut), batching.schedule(step.graph));
    return count;
  };
  return {"micro_batching", true, run,
          str(batching.micro_batches, " micro-batches of ", batching.num_arguments, " inputs, ",
              to_string(batching.rule), batching.rule.table.empty() ? "" : " ", batching.rule.table,
              batching.requires_exact ? ", exact" : "")};
}

}  // namespace flow::pipeline
