#include "graph/passes/node_cost.h"

#include <algorithm>
#include <vector>

namespace flow::graph {

namespace {

// One core of the machines that the boxing cost table describes; good enough to compare stages.
constexpr double kFlopsPerUs = 5e4;
constexpr double kBytesPerUs = 1e4;

}  // namespace

int64_t bytes_of(const Value& value) {
  return value.shape.numel() * static_cast<int64_t>(dtype_size(value.dtype));
}

int64_t part_bytes(const Value& value) {
  if (!value.placement.defined()) return bytes_of(value);
  return static_cast<int64_t>(value.meta_on(value.placement.ranks()[0])->local_bytes());
}

double kernel_us(double flops, double bytes) {
  return std::max(flops / kFlopsPerUs, bytes / kBytesPerUs);
}

NodeWork work_of(const Graph& graph, const Node& node) {
  if (node.op->view != nullptr) return {};
  NodeWork work;
  std::vector<MetaPtr> metas;
  for (const ValueId id : node.inputs) {
    metas.push_back(id == kNoValue ? nullptr : graph.value(id).meta_on(0));
    if (id != kNoValue) work.bytes += static_cast<double>(bytes_of(graph.value(id)));
  }
  for (const ValueId id : node.outputs)
    work.bytes += static_cast<double>(bytes_of(graph.value(id)));
  if (node.op->cost != nullptr) {
    InferContext infer(*node.op, metas, node.raw_attrs());
    node.op->infer(infer);
    work.flops =
        node.op->cost(SbpContext(*node.op, metas, node.raw_attrs(), infer.outputs())).flops;
  }
  return work;
}

double predicted_us(const Graph& graph, const Node& node, const NodeWork& work) {
  const Placement& placement = graph.value(node.outputs[0]).placement;
  const int64_t ranks = placement.defined() ? placement.num_ranks() : 1;
  return kernel_us(work.flops, work.bytes) / static_cast<double>(ranks);
}

double predicted_us(const Graph& graph, const Node& node) {
  return predicted_us(graph, node, work_of(graph, node));
}

}  // namespace flow::graph
