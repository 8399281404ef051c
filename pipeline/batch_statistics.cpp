#include "pipeline/batch_statistics.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "ops/norm/batch_norm_op.h"
#include "ops/norm/channel_op.h"

namespace flow::pipeline {

using graph::Node;

bool takes_own_sums(const Node& node) {
  return node.op == &ops::kChannelMoments || node.op == &ops::kChannelMomentsBackward;
}

bool makes_channel_sums(const Node& node) {
  return node.op == &ops::kChannelSquares || node.op == &ops::kChannelDot;
}

std::vector<SbpSignature> own_batch_signatures(const Node& node) {
  using sbp::broadcast, sbp::partial_sum, sbp::split;
  if (node.op == &ops::kBatchNorm) {
    return {{{split(0), broadcast, broadcast}, {split(0), broadcast}}};
  }
  if (node.op == &ops::kBatchNormBackward) {
    return {{{split(0), split(0), broadcast, broadcast}, {split(0), partial_sum, partial_sum}}};
  }
  return {};
}

bool writes_in_turn(const Node& node) {
  return node.op == &ops::kUpdateRunningStats || node.op == &ops::kCountBatch;
}

namespace {

template <class Attrs>
Node with_count_of(const Node& node, const BatchCut& cut, int64_t m) {
  Attrs attrs;
  FLOW_ASSERT(node.attrs.size() == sizeof(attrs), node.op->name);
  std::memcpy(&attrs, node.attrs.data(), sizeof(attrs));
  attrs.count = attrs.count * cut.size_of(m) / cut.num_samples;
  Node part = node;
  std::memcpy(part.attrs.data(), &attrs, sizeof(attrs));
  return part;
}

}  // namespace

Node in_micro_batch(const Node& node, const BatchCut& cut, int64_t m) {
  if (takes_own_sums(node)) return with_count_of<ops::MomentsAttrs>(node, cut, m);
  if (node.op == &ops::kUpdateRunningStats) {
    return with_count_of<ops::RunningStatsAttrs>(node, cut, m);
  }
  return node;
}

std::vector<size_t> batch_norms_of_parts(const graph::Graph& graph, const MicroBatchCut& cut) {
  std::vector<size_t> nodes;
  for (size_t i = 0; i < graph.nodes.size() && cut.num_micro_batches > 1; ++i) {
    const Node& node = graph.nodes[i];
    const bool is_batch_norm = node.op == &ops::kBatchNorm || node.op == &ops::kChannelMoments;
    if (is_batch_norm && node.phase == Phase::kForward && cut.node_time[i] == NodeTime::kEach &&
        !cut.sbp_of(node.inputs[0]).is_broadcast()) {
      nodes.push_back(i);
    }
  }
  return nodes;
}

int64_t channel_elements(const graph::Graph& graph, const Node& node, const BatchCut& cut,
                         int64_t m) {
  int64_t count = 0;
  if (node.op == &ops::kChannelMoments) {
    count = static_cast<const ops::MomentsAttrs*>(node.raw_attrs())->count;
  } else {
    const Shape& x = graph.value(node.inputs[0]).shape;
    count = x.numel() / std::max<int64_t>(x[1], 1) /
            static_cast<const ops::BatchNormAttrs*>(node.raw_attrs())->parts;
  }
  return count * cut.size_of(m) / cut.num_samples;
}

std::string name_of_batch_norm(const Node& node) {
  const std::string module = node.module.empty() ? "" : str(" in module '", node.module, "'");
  return str("batch_norm", module, " at ", node.file, ":", node.line);
}

void require_exact(const graph::Graph& graph, const MicroBatchCut& cut) {
  for (const size_t i : batch_norms_of_parts(graph, cut)) {
    throw Unsupported(str("[graph] require_exact: ", name_of_batch_norm(graph.nodes[i]),
                          " takes the statistics of each of ", cut.num_micro_batches,
                          " micro-batches, not of the batch; use one micro-batch, eval(), or a "
                          "norm that does not mix samples"));
  }
}

}  // namespace flow::pipeline
