#include "graph/program/order.h"

#include <algorithm>

#include "boxing/layout.h"

namespace flow::graph {

bool Order::takes_part(BlockId block, int64_t rank) const {
  const std::vector<int64_t>& all = ranks[static_cast<size_t>(block)];
  return all.empty() || std::binary_search(all.begin(), all.end(), rank);
}

Order plain_order(const Graph& graph) {
  Order order;
  order.cut.value_sbp.assign(graph.values.size(), sbp::broadcast);
  order.cut.is_per_micro_batch.assign(graph.values.size(), false);
  order.cut.is_made_each.assign(graph.values.size(), false);
  order.cut.node_time.assign(graph.nodes.size(), NodeTime::kBefore);
  return order;
}

Value value_in(const Graph& graph, const MicroBatchCut& cut, ValueId id, int64_t m) {
  const Sbp& sbp = cut.sbp_of(id);
  return sbp.is_split() ? part_of(cut.batch, graph.value(id), sbp.dim(), m) : graph.value(id);
}

Value sent_value(const Graph& graph, const MicroBatchCut& cut, const BlockEdge& edge, int64_t m) {
  Value value = value_in(graph, cut, graph.nodes[edge.node].inputs[0], m);
  value.nd_sbp = boxing::without_partial(value.nd_sbp);
  return value;
}

Value arrived_value(const Graph& graph, const MicroBatchCut& cut, const BlockEdge& edge,
                    int64_t m) {
  Value value = value_in(graph, cut, graph.nodes[edge.node].outputs[0], m);
  value.nd_sbp = boxing::without_partial(value.nd_sbp);
  return value;
}

}  // namespace flow::graph
