#include "graph/program/step_uses.h"

#include <algorithm>
#include <limits>

namespace flow::graph {

StepUses::StepUses(const Graph& graph, const Order& order)
    : graph_(graph),
      order_(order),
      uses_(graph),
      last_read_(graph.values.size(), 0),
      is_summed_(graph.values.size(), false),
      is_read_in_parts_(graph.values.size(), false) {
  const MicroBatchCut& cut = order.cut;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const ValueId id : graph.nodes[i].inputs) {
      if (id == kNoValue) continue;
      if (cut.node_time[i] == NodeTime::kEach || cut.is_per_micro_batch_of(id)) {
        is_read_in_parts_[id] = true;
        read(id, time_of(i));
      } else {
        read_whole(id, time_of(i));
      }
    }
  }
  for (const ValueId id : graph.outputs)
    read_whole(id, std::numeric_limits<size_t>::max());
  // Captures are written at the end, with values that nothing writes in place any more.
  for (const Capture& capture : graph.captures)
    read_whole(capture.final_value, 0);
  // The output of a view op may share memory with its input, so a read of the output is a read of
  // both.
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    if (node.op->view != nullptr) read(node.inputs[0], last_read_[node.outputs[0]]);
  }
}

void StepUses::read(ValueId id, size_t time) {
  last_read_[id] = std::max(last_read_[id], time);
}

void StepUses::read_whole(ValueId id, size_t time) {
  read(id, time);
  is_summed_[id] = order_.cut.sbp_of(id).is_partial();
}

}  // namespace flow::graph
