#include "graph/passes/copies.h"

#include <unordered_set>

#include "graph/ir/graph_uses.h"
#include "graph/ir/memory_roots.h"
#include "graph/passes/value_map.h"
#include "ops/creation/copy_op.h"
#include "ops/shape/view_op.h"

namespace flow::graph {

namespace {

// Whether several elements of the value may share memory.
bool is_expanded(const GraphUses& uses, ValueId id) {
  for (const Node* maker = uses.maker_node(id); maker != nullptr && maker->op->view != nullptr;
       maker = uses.maker_node(maker->inputs[0])) {
    if (maker->op == &ops::kExpand) return true;
  }
  return false;
}

}  // namespace

// Backward clones a gradient that another holder may share; in eager mode most gradients are moved
// instead. Lowering copies a value that is written although something reads it later, so only a
// clone that gives each element memory of its own for a write is needed.
int64_t remove_gradient_copies(Graph& graph) {
  const GraphUses uses(graph);
  const std::unordered_set<ValueId> written = written_roots(graph);
  ValueMap map(graph);
  int64_t removed = 0;
  for (Node& node : graph.nodes) {
    map.apply_to_inputs(node);
    if (node.op != &ops::kClone || node.phase != Phase::kBackward) continue;
    if (!(graph.value(node.inputs[0]) == graph.value(node.outputs[0]))) continue;
    if (written.contains(node.outputs[0]) && is_expanded(uses, node.inputs[0])) continue;
    map.replace(node.outputs[0], node.inputs[0]);
    ++removed;
  }
  map.apply_to_results(graph);
  return removed;
}

}  // namespace flow::graph
