#include "pipeline/batch_statistics.h"

#include "core/error.h"
#include "graph/ir/place.h"

namespace flow::pipeline {

using graph::Node;

Node in_micro_batch(const Node& node, const BatchCut& cut, int64_t m) {
  Node part = node;
  const auto scale_count = node.op->micro_batch.scale_count;
  if (scale_count != nullptr) scale_count(part.attrs.data(), cut.size_of(m), cut.num_samples);
  return part;
}

std::vector<size_t> nodes_with_own_statistics(const graph::Graph& graph, const MicroBatchCut& cut) {
  std::vector<size_t> nodes;
  for (size_t i = 0; i < graph.nodes.size() && cut.num_micro_batches > 1; ++i) {
    const Node& node = graph.nodes[i];
    const bool takes_statistics = node.op->micro_batch.statistics.function != nullptr;
    if (takes_statistics && node.phase == Phase::kForward && cut.node_time[i] == NodeTime::kEach &&
        !cut.sbp_of(node.inputs[0]).is_broadcast()) {
      nodes.push_back(i);
    }
  }
  return nodes;
}

int64_t elements_of_statistics(const graph::Graph& graph, const Node& node, const BatchCut& cut,
                               int64_t m) {
  std::vector<MetaPtr> metas;
  for (const graph::ValueId id : node.inputs)
    metas.push_back(id == graph::kNoValue ? nullptr : graph.value(id).meta_on(0));
  const OpContext ctx(*node.op, metas, node.raw_attrs());
  return node.op->micro_batch.statistics.elements(ctx) * cut.size_of(m) / cut.num_samples;
}

std::string name_of_statistics(const Node& node) {
  const std::string module = node.module.empty() ? "" : str(" in module '", node.module, "'");
  return str(node.op->micro_batch.statistics.function, module, " at ", node.file, ":", node.line);
}

void require_exact(const graph::Graph& graph, const MicroBatchCut& cut) {
  for (const size_t i : nodes_with_own_statistics(graph, cut)) {
    graph::throw_at<Unsupported>(
        graph.nodes[i], str("[graph] require_exact: ", name_of_statistics(graph.nodes[i]),
                            " takes the statistics of each of ", cut.num_micro_batches,
                            " micro-batches, not of the batch; use one micro-batch, eval(), or a "
                            "norm that does not mix samples"));
  }
}

}  // namespace flow::pipeline
