#include "graph/ir/memory_roots.h"

#include <bit>

namespace flow::graph {

IdMap<ValueId, ValueId> memory_roots(const Graph& graph) {
  IdMap<ValueId, ValueId> root(graph.values.size());
  for (ValueId id = 0; root.contains(id); ++id)
    root[id] = id;
  for (const Node& node : graph.nodes) {
    if (node.op->view != nullptr) root[node.outputs[0]] = root[node.inputs[0]];
    size_t output = 0;
    for (uint32_t left = node.op->mutates; left != 0; left &= left - 1, ++output)
      root[node.outputs[output]] = root[node.inputs[static_cast<size_t>(std::countr_zero(left))]];
  }
  return root;
}

std::unordered_set<ValueId> written_roots(const Graph& graph) {
  const IdMap<ValueId, ValueId> root = memory_roots(graph);
  std::unordered_set<ValueId> written;
  for (const Node& node : graph.nodes) {
    for (uint32_t left = node.op->mutates; left != 0; left &= left - 1)
      written.insert(root[node.inputs[static_cast<size_t>(std::countr_zero(left))]]);
  }
  return written;
}

}  // namespace flow::graph
