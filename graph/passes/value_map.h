// The replacement of values by others while a pass walks through a graph's nodes in order.
#pragma once

#include "graph/ir/id_map.h"
#include "graph/ir/ir.h"

namespace flow::graph {

class ValueMap {
 public:
  explicit ValueMap(const Graph& graph) : to_(graph.values.size()) {
    for (ValueId id = 0; to_.contains(id); ++id)
      to_[id] = id;
  }

  // Uses of `value` become uses of `by`, which is equal to it.
  void replace(ValueId value, ValueId by) { to_[value] = by; }

  ValueId operator()(ValueId value) const { return value == kNoValue ? kNoValue : to_[value]; }

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
  IdMap<ValueId, ValueId> to_;
};

}  // namespace flow::graph
