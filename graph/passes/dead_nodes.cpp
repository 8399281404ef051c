#include "graph/passes/dead_nodes.h"

#include <algorithm>

#include "graph/ir/id_map.h"

namespace flow::graph {

void renumber_values(Graph& graph) {
  IdMap<ValueId, ValueId> new_id(graph.values.size(), kNoValue);
  std::vector<Value> values;
  const auto define = [&](ValueId& id) {
    new_id[id] = static_cast<ValueId>(values.size());
    values.push_back(std::move(graph.value(id)));
    id = new_id[id];
  };
  const auto use = [&](ValueId& id) {
    if (id != kNoValue) id = new_id[id];
  };
  for (ValueId& input : graph.inputs)
    define(input);
  for (Capture& capture : graph.captures)
    define(capture.initial);
  for (Node& node : graph.nodes) {
    for (ValueId& input : node.inputs)
      use(input);
    for (ValueId& output : node.outputs)
      define(output);
  }
  for (Capture& capture : graph.captures)
    use(capture.final_value);
  for (ValueId& output : graph.outputs)
    use(output);
  graph.values = std::move(values);
}

int64_t remove_nodes(Graph& graph, const std::vector<bool>& is_removed) {
  size_t kept = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (is_removed[i]) continue;
    if (kept != i) graph.nodes[kept] = std::move(graph.nodes[i]);
    ++kept;
  }
  const auto removed = static_cast<int64_t>(graph.nodes.size() - kept);
  graph.nodes.resize(kept);
  if (removed > 0) renumber_values(graph);
  return removed;
}

int64_t eliminate_dead_nodes(Graph& graph) {
  IdMap<ValueId, bool> is_used(graph.values.size(), false);
  for (const ValueId output : graph.outputs)
    is_used[output] = true;
  for (const Capture& capture : graph.captures) {
    is_used[capture.final_value] = true;
  }
  std::vector<bool> is_dead(graph.nodes.size(), false);
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    is_dead[i] = !node.op->has_effect && std::none_of(node.outputs.begin(), node.outputs.end(),
                                                      [&](ValueId id) { return is_used[id]; });
    if (is_dead[i]) continue;
    for (const ValueId input : node.inputs) {
      if (input != kNoValue) is_used[input] = true;
    }
  }
  return remove_nodes(graph, is_dead);
}

}  // namespace flow::graph
