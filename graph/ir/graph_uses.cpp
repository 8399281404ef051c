#include "graph/ir/graph_uses.h"

namespace flow::graph {

GraphUses::GraphUses(const Graph& graph)
    : graph_(graph),
      maker_(graph.values.size(), -1),
      ranges_(graph.values.size()),
      num_results_(graph.values.size(), 0) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const ValueId id : graph.nodes[i].outputs)
      maker_[id] = static_cast<int64_t>(i);
    for (const ValueId id : graph.nodes[i].inputs) {
      if (id != kNoValue) ++ranges_[id].size;
    }
  }
  for (const ValueId id : graph.outputs)
    ++num_results_[id];
  for (const Capture& capture : graph.captures)
    ++num_results_[capture.final_value];
  size_t count = 0;
  for (ValueId id = 0; ranges_.contains(id); ++id) {
    ranges_[id].begin = count;
    count += ranges_[id].size;
    ranges_[id].size = 0;  // counted again below
  }
  readers_.resize(count);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const ValueId id : graph.nodes[i].inputs) {
      if (id != kNoValue) readers_[ranges_[id].begin + ranges_[id].size++] = i;
    }
  }
}

}  // namespace flow::graph
