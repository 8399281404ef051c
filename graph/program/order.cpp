#include "graph/program/order.h"

#include <algorithm>
#include <limits>

#include "boxing/layout.h"

namespace flow::graph {

bool Order::takes_part(BlockId block, int64_t rank) const {
  const std::vector<int64_t>& all = ranks[static_cast<size_t>(block)];
  return all.empty() || std::binary_search(all.begin(), all.end(), rank);
}

size_t Order::received_at(const BlockEdge& edge, int64_t micro_batch) const {
  if (edge.to < 0) return std::numeric_limits<size_t>::max();
  return positions[static_cast<size_t>(edge.to)][static_cast<size_t>(micro_batch)];
}

std::vector<int64_t> MicroBatchCut::sizes() const {
  std::vector<int64_t> firsts;
  for (int64_t m = 0; m < num_micro_batches; ++m) {
    if (batch.like(m) == m) firsts.push_back(m);
  }
  return firsts;
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
