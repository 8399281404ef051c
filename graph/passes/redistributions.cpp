#include <algorithm>

#include "boxing/redistribute_op.h"
#include "boxing/route.h"
#include "graph/passes/pass.h"
#include "graph/passes/value_map.h"

namespace flow::graph {

namespace {

boxing::Layout layout_of(const Value& value) {
  return {value.placement, value.nd_sbp};
}

bool has_partial(const Value& value) {
  return std::any_of(value.nd_sbp.begin(), value.nd_sbp.end(),
                     [](Sbp entry) { return entry.is_partial(); });
}

double predicted_us(const Value& from, const Value& to) {
  return boxing::find_route(from.shape, from.dtype, layout_of(from), layout_of(to)).time_us();
}

std::vector<int64_t> count_uses(const Graph& graph) {
  std::vector<int64_t> uses(graph.values.size(), 0);
  for (const Node& node : graph.nodes) {
    for (const ValueId input : node.inputs) {
      if (input != kNoValue) ++uses[static_cast<size_t>(input)];
    }
  }
  for (const ValueId output : graph.outputs)
    ++uses[static_cast<size_t>(output)];
  for (const Capture& capture : graph.captures)
    ++uses[static_cast<size_t>(capture.final_value)];
  return uses;
}

}  // namespace

int64_t join_redistributions(Graph& graph) {
  ValueMap map(graph);
  const std::vector<int64_t> maker = makers_of(graph), uses = count_uses(graph);
  int64_t changed = 0;
  for (Node& node : graph.nodes) {
    map.apply_to_inputs(node);
    if (node.op != &boxing::kRedistribute) continue;
    const ValueId middle = node.inputs[0];
    const int64_t made_by = maker[static_cast<size_t>(middle)];
    if (made_by < 0 || graph.nodes[static_cast<size_t>(made_by)].op != &boxing::kRedistribute) {
      continue;
    }
    const ValueId source = graph.nodes[static_cast<size_t>(made_by)].inputs[0];
    const Value &from = graph.value(source), &to = graph.value(node.outputs[0]);
    if (from == to && !has_partial(from)) {
      map.replace(node.outputs[0], source);
      ++changed;
    } else if (uses[static_cast<size_t>(middle)] == 1 &&
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
