#include "graph/passes/copies.h"

#include "graph/passes/value_map.h"
#include "ops/creation/copy_op.h"

namespace flow::graph {

// Backward clones a gradient that another holder may share; in eager mode most gradients are moved
// instead. Values of a graph are never written, so none of them needs a copy.
int64_t remove_gradient_copies(Graph& graph) {
  ValueMap map(graph);
  int64_t removed = 0;
  for (Node& node : graph.nodes) {
    map.apply_to_inputs(node);
    if (node.op != &ops::kClone || node.phase != Phase::kBackward) continue;
    if (!(graph.value(node.inputs[0]) == graph.value(node.outputs[0]))) continue;
    map.replace(node.outputs[0], node.inputs[0]);
    ++removed;
  }
  map.apply_to_results(graph);
  return removed;
}

}  // namespace flow::graph
