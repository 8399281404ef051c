#include "graph/passes/settle_stages.h"

#include <algorithm>
#include <map>
#include <set>

#include "boxing/redistribute_op.h"
#include "graph/ir/id_map.h"

namespace flow::graph {

namespace {

// The placements on which the forward nodes of each stage compute.
class StagePlacements {
 public:
  explicit StagePlacements(const Graph& graph) : graph_(graph) {}

  void add(const Node& node) {
    if (node.phase != Phase::kForward || node.op == &boxing::kRedistribute) return;
    placements_[node.stage].insert(placement_of(node));
  }

  // `stage`, or the last stage before it that computes on the node's placement, if there is one.
  int64_t fitting(const Node& node, int64_t stage) const {
    const void* const placement = placement_of(node);
    for (auto it = placements_.rbegin(); it != placements_.rend(); ++it) {
      if (it->first <= stage && it->second.contains(placement)) return it->first;
    }
    return stage;
  }

  bool contains(int64_t stage, const Node& node) const {
    const auto found = placements_.find(stage);
    return found != placements_.end() && found->second.contains(placement_of(node));
  }

 private:
  const void* placement_of(const Node& node) const {
    return graph_.value(node.outputs[0]).placement.id();
  }

  const Graph& graph_;
  std::map<int64_t, std::set<const void*>> placements_;
};

}  // namespace

int64_t settle_stages(Graph& graph) {
  int64_t settled = 0;
  IdMap<ValueId, int64_t> stage_of(graph.values.size(), -1);
  // Where backward makes a value; a redistribution sends it on from there.
  IdMap<ValueId, int64_t> gradient_stage(graph.values.size(), -1);
  StagePlacements placements(graph);
  for (Node& node : graph.nodes) {
    if (node.stage < 0) ++settled;
    int64_t largest = -1;
    for (const ValueId input : node.inputs) {
      if (input != kNoValue) largest = std::max(largest, stage_of[input]);
    }
    if (node.stage < 0) {
      const bool is_forward = node.phase == Phase::kForward || node.op == &boxing::kRedistribute;
      node.stage = is_forward || largest < 0 ? largest : placements.fitting(node, largest);
    }
    // A sum of gradients is traced in the stage of its last addend; another addend may come from an
    // earlier stage, whose backward runs later.
    int64_t gradient = node.phase == Phase::kBackward ? node.stage : -1;
    for (const ValueId input : node.inputs) {
      const int64_t earlier = input == kNoValue ? -1 : gradient_stage[input];
      if (earlier < 0 || earlier >= gradient) continue;
      if (node.op == &boxing::kRedistribute || placements.contains(earlier, node)) {
        gradient = earlier;
      }
    }
    if (gradient >= 0 && node.op != &boxing::kRedistribute) node.stage = gradient;
    placements.add(node);
    for (const ValueId output : node.outputs) {
      stage_of[output] = node.stage;
      gradient_stage[output] = gradient;
    }
  }
  IdMap<ValueId, int64_t> first_user(graph.values.size(), -1);
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    for (const ValueId output : node->outputs) {
      if (node->stage < 0) node->stage = first_user[output];
    }
    node->stage = std::max<int64_t>(node->stage, 0);
    for (const ValueId input : node->inputs) {
      if (input != kNoValue) first_user[input] = node->stage;
    }
  }
  return settled;
}

}  // namespace flow::graph
