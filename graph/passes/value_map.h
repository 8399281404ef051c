// Replacing values of a graph by others while a pass goes through its nodes in order.
#pragma once

#include <numeric>
#include <vector>

#include "graph/ir/ir.h"

namespace flow::graph {

class ValueMap {
 public:
  explicit ValueMap(const Graph& graph) : to_(graph.values.size()) {
    std::iota(to_.begin(), to_.end(), ValueId{0});
  }

  // Of a value that has an equal: uses become uses of that one.
  void replace(ValueId value, ValueId by) { to_[static_cast<size_t>(value)] = by; }

  ValueId operator()(ValueId value) const {
    return value == kNoValue ? kNoValue : to_[static_cast<size_t>(value)];
  }

  void apply_to_inputs(Node& node) const {
    for (ValueId& input : node.inputs)
      input = (*this)(input);
  }

  void apply_to_results(Graph& graph) const {
    for (ValueId& output : graph.outputs)
      output = (*this)(output);
    for (Capture& capture : graph.captures)
      capture.final_value = (*this)(capture.final_value);
  }

 private:
  std::vector<ValueId> to_;
};

// The node that makes each value; -1 for inputs and captures.
inline std::vector<int64_t> makers_of(const Graph& graph) {
  std::vector<int64_t> maker(graph.values.size(), -1);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const ValueId output : graph.nodes[i].outputs)
      maker[static_cast<size_t>(output)] = static_cast<int64_t>(i);
  }
  return maker;
}

}  // namespace flow::graph
