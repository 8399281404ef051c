#include "graph/passes/redistributions.h"

#include <algorithm>

#include "boxing/planner.h"
#include "boxing/redistribute_op.h"
#include "graph/ir/graph_uses.h"
#include "graph/passes/value_map.h"

namespace flow::graph {

namespace {

bool has_partial(const Value& value) {
  return std::any_of(value.nd_sbp.begin(), value.nd_sbp.end(),
                     [](Sbp entry) { return entry.is_partial(); });
}

double predicted_us(const Value& from, const Value& to) {
  return boxing::find_route(from.shape, from.dtype, layout_of(from), layout_of(to)).time_us();
}

}  // namespace

boxing::Layout layout_of(const Value& value) {
  return {value.placement, value.nd_sbp};
}

bool is_transfer(const Node& node) {
  return node.op == &boxing::kRedistribute || node.op == &boxing::kAllReduceMean;
}

int64_t join_redistributions(Graph& graph) {
  ValueMap map(graph);
  const GraphUses uses(graph);
  int64_t changed = 0;
  for (Node& node : graph.nodes) {
    map.apply_to_inputs(node);
    if (node.op != &boxing::kRedistribute) continue;
    const ValueId middle = node.inputs[0];
    const Node* first = uses.maker_node(middle);
    if (first == nullptr || first->op != &boxing::kRedistribute) continue;
    const ValueId source = first->inputs[0];
    const Value &from = graph.value(source), &to = graph.value(node.outputs[0]);
    if (from == to && !has_partial(from)) {
      map.replace(node.outputs[0], source);
      ++changed;
    } else if (uses.num_uses(middle) == 1 &&
               predicted_us(from, to) <= predicted_us(from, graph.value(middle)) +
                                             predicted_us(graph.value(middle), to)) {
      node.inputs[0] = source;
      ++changed;
    }
  }
  map.apply_to_results(graph);
  return changed;
}

}  // namespace flow::graph
