#include "pipeline/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>

#include "core/error.h"
#include "graph/passes/node_cost.h"
#include "graph/program/order.h"
#include "pipeline/batch_statistics.h"
#include "pipeline/edges.h"
#include "pipeline/order.h"

namespace flow::pipeline {

namespace {

using graph::Graph;
using graph::Node;
using graph::Value;

std::string name_of(const Slot& slot) {
  if (slot.stage < 0) return "the end";
  std::string text = to_string(Action{slot.stage, slot.kind, 0});
  text.pop_back();
  return text;
}

// The bytes of an edge's messages in a micro-batch: "48", or "48 or 32" if micro-batches differ.
std::string bytes_text(const Graph& graph, const MicroBatchCut& cut, const Edge& edge) {
  const graph::BlockEdge block_edge{edge.node, graph::kAfterActions, graph::kAfterActions, {}};
  std::set<int64_t, std::greater<>> sizes;
  for (const int64_t m : cut.sizes())
    sizes.insert(graph::bytes_of(graph::sent_value(graph, cut, block_edge, m)));
  std::string text;
  for (const int64_t bytes : sizes)
    text += str(text.empty() ? "" : " or ", bytes);
  return text;
}

// A node's work in one micro-batch, which reads and writes whole what is not split, such as weights
// and their gradients.
graph::NodeWork work_in_micro_batch(const Graph& graph, const MicroBatchCut& cut, size_t index) {
  const Node& node = graph.nodes[index];
  graph::NodeWork work = graph::work_of(graph, node);
  if (work.bytes == 0) return work;
  const double share = 1 / static_cast<double>(cut.num_micro_batches);
  bool is_cut = false;
  const auto add = [&](graph::ValueId id, Sbp sbp) {
    if (id == graph::kNoValue || !sbp.is_split()) return;
    is_cut = true;
    work.bytes -= (1 - share) * static_cast<double>(graph::bytes_of(graph.value(id)));
  };
  for (size_t i = 0; i < node.inputs.size(); ++i)
    add(node.inputs[i], cut.input_sbp[index][i]);
  for (const graph::ValueId id : node.outputs)
    add(id, cut.sbp_of(id));
  if (is_cut) work.flops *= share;
  return work;
}

}  // namespace

std::vector<StageCost> stage_costs(const Graph& graph, const MicroBatchCut& cut) {
  const StagePlan stages = plan_stages(graph, cut, true);
  std::vector<StageCost> costs(static_cast<size_t>(stages.num_stages), {0, 0, 0});
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (cut.node_time[i] != NodeTime::kEach || stages.edge_of[i] >= 0) continue;
    const Slot& slot = stages.slots[i];
    if (slot.stage < 0) continue;
    StageCost& cost = costs[static_cast<size_t>(slot.stage)];
    const std::array parts{&cost.forward, &cost.backward, &cost.weight};
    *parts[static_cast<size_t>(slot.kind)] +=
        graph::predicted_us(graph, graph.nodes[i], work_in_micro_batch(graph, cut, i));
  }
  return costs;
}

std::string describe(const Graph& graph, const MicroBatchCut& cut, const Schedule& rule,
                     const std::string& name) {
  const StagePlan stages = plan_stages(graph, cut, rule.has_weights());
  const Schedule schedule = schedule_on_ranks(rule, stages);
  const Timeline timeline = simulate(schedule, stage_costs(graph, cut));
  std::string text = str("micro-batches: ", cut.num_micro_batches, " of ", cut.batch.num_samples,
                         " samples, ", schedule.num_stages, " stages, schedule ", name, " on ",
                         schedule.actions.size(), " workers: predicted bubble ",
                         std::round(1000 * timeline.bubble()) / 10, " %, micro-batches kept");
  for (const int64_t kept : timeline.in_flight)
    text += str(' ', kept);
  text += '\n';
  std::string last;  // a call may take several statistics
  for (const size_t i : nodes_with_own_statistics(graph, cut)) {
    const std::string name_of_call = name_of_statistics(graph.nodes[i]);
    if (name_of_call == last) continue;
    last = name_of_call;
    text += str("  ", name_of_call,
                " takes the statistics of each micro-batch, not of the batch, and updates running "
                "ones once for each\n");
  }
  for (const Edge& edge : stages.edges) {
    const Node& node = graph.nodes[edge.node];
    const Value &from = graph.value(node.inputs[0]), &to = graph.value(node.outputs[0]);
    text += str("  edge at ", node.file, ":", node.line, " from ", name_of(edge.from), " to ",
                name_of(edge.to), ": ", from.shape, ' ', from.dtype, " from ", from.nd_sbp, " on ",
                from.placement, " to ", to.nd_sbp, " on ", to.placement, ", ",
                bytes_text(graph, cut, edge), " bytes a micro-batch\n");
  }
  return text;
}

}  // namespace flow::pipeline
