#include "graph/passes/identities.h"

#include "graph/ir/graph_uses.h"
#include "graph/passes/value_map.h"
#include "ops/elementwise/cast_op.h"
#include "ops/shape/view_op.h"

namespace flow::graph {

namespace {

template <class Attrs>
const Attrs& attrs_of(const Node& node) {
  return *static_cast<const Attrs*>(node.raw_attrs());
}

// True if `to` represents every value of `from` exactly.
bool is_lossless(DType from, DType to) {
  if (!is_floating(from) || !is_floating(to)) return false;
  return to == DType::kFloat64 || (to == DType::kFloat32 && is_half(from));
}

bool undoes(const Node& first, const Node& second) {
  const Shape& a = attrs_of<ops::PermuteAttrs>(first).dims;
  const Shape& b = attrs_of<ops::PermuteAttrs>(second).dims;
  for (int64_t i = 0; i < b.size(); ++i) {
    if (a[b[i]] != i) return false;
  }
  return true;
}

}  // namespace

int64_t remove_identities(Graph& graph) {
  ValueMap map(graph);
  const GraphUses uses(graph);
  int64_t removed = 0;
  for (Node& node : graph.nodes) {
    map.apply_to_inputs(node);
    if (node.op != &ops::kReshape && node.op != &ops::kPermute && node.op != &ops::kCast) continue;
    const Value& result = graph.value(node.outputs[0]);
    const Node* first = uses.maker_node(node.inputs[0]);
    ValueId equal = node.inputs[0];
    if (first != nullptr && first->op == node.op) {
      const ValueId source = map(first->inputs[0]);
      const Value& before = graph.value(source);
      if (node.op == &ops::kPermute
              ? undoes(*first, node)
              : node.op == &ops::kReshape || is_lossless(before.dtype, graph.value(equal).dtype)) {
        equal = source;
      }
    }
    // A permutation may leave the shape as it is.
    const bool is_same =
        graph.value(equal) == result && (node.op != &ops::kPermute || equal != node.inputs[0]);
    if (!is_same) continue;
    map.replace(node.outputs[0], equal);
    ++removed;
  }
  map.apply_to_results(graph);
  return removed;
}

}  // namespace flow::graph
