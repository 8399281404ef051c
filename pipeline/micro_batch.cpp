#include "pipeline/micro_batch.h"

#include <algorithm>

#include "boxing/redistribute_op.h"
#include "core/error.h"

namespace flow::pipeline {

namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;

// The outputs' layouts along the axis for these input layouts, or an empty list.
std::vector<Sbp> match_signature(const Graph& graph, const Node& node,
                                 const std::vector<Sbp>& inputs, int64_t num_micro_batches) {
  std::vector<MetaPtr> metas;
  for (const ValueId id : node.inputs) {
    metas.push_back(id == kNoValue ? nullptr : graph.value(id).meta_on(0));
  }
  InferContext infer(*node.op, metas, node.raw_attrs());
  node.op->infer(infer);
  SbpContext ctx(*node.op, metas, node.raw_attrs(), infer.outputs(), num_micro_batches);
  node.op->sbp(ctx);
  for (const SbpSignature& signature : ctx.signatures()) {
    if (signature.inputs == inputs) return signature.outputs;
  }
  return {};
}

}  // namespace

MicroBatchPlan plan_micro_batches(const Graph& graph, int64_t num_micro_batches, size_t num_whole) {
  MicroBatchPlan plan;
  plan.num_micro_batches = num_micro_batches;
  plan.value_sbp.assign(graph.values.size(), sbp::broadcast);
  std::vector<bool> is_late(graph.values.size(), false);  // made after all micro-batches
  const auto sbp_of = [&](ValueId id) -> Sbp& { return plan.value_sbp[static_cast<size_t>(id)]; };
  for (size_t i = 0; i + num_whole < graph.inputs.size(); ++i) {
    const ValueId input = graph.inputs[i];
    if (graph.value(input).shape.empty()) continue;  // a scalar has no samples
    sbp_of(input) = sbp::split(0);
  }
  for (const Node& node : graph.nodes) {
    std::vector<Sbp> inputs;
    bool has_split = false;
    bool has_partial = false;
    bool has_late = false;
    for (const ValueId id : node.inputs) {
      inputs.push_back(id == kNoValue ? sbp::broadcast : sbp_of(id));
      has_split |= inputs.back().is_split();
      has_partial |= inputs.back().is_partial();
      has_late |= id != kNoValue && is_late[static_cast<size_t>(id)];
    }
    if (!has_split && !has_partial) {
      plan.node_time.push_back(has_late ? NodeTime::kAfter : NodeTime::kBefore);
      for (const ValueId id : node.outputs)
        is_late[static_cast<size_t>(id)] = has_late;
      continue;
    }
    std::vector<Sbp> outputs;
    if (!has_late) {
      outputs = node.op == &boxing::kRedistribute
                    ? std::vector<Sbp>{inputs[0]}
                    : match_signature(graph, node, inputs, num_micro_batches);
    }
    if (node.draw >= 0 && num_micro_batches > 1) {
      throw Unsupported(str("[micro-batch] ", node.op->name, " at ", node.file, ":", node.line,
                            " draws random numbers, which micro-batches do not yet draw as one "
                            "batch does; use one micro-batch"));
    }
    if (!outputs.empty()) {
      plan.node_time.push_back(NodeTime::kEach);
      for (size_t i = 0; i < outputs.size(); ++i)
        sbp_of(node.outputs[i]) = outputs[i];
      continue;
    }
    if (has_split) {
      throw Unsupported(str("[micro-batch] ", node.op->name, " at ", node.file, ":", node.line,
                            " has no rule for inputs split into micro-batches; run it outside the "
                            "graph or use one micro-batch"));
    }
    plan.node_time.push_back(NodeTime::kAfter);
    for (const ValueId id : node.outputs)
      is_late[static_cast<size_t>(id)] = true;
  }
  return plan;
}

}  // namespace flow::pipeline
