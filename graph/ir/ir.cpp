#include "graph/ir/ir.h"

#include <algorithm>

#include "graph/ir/id_map.h"

namespace flow::graph {

Value Value::of(const TensorMeta& meta) {
  return {meta.shape, meta.dtype, meta.device, meta.placement, meta.nd_sbp};
}

MetaPtr Value::meta_on(int64_t rank) const {
  return placement.defined() ? global_meta(shape, dtype, placement, nd_sbp, rank)
                             : local_meta(shape, dtype, device);
}

bool operator==(const Node& a, const Node& b) {
  return a.op == b.op && a.inputs == b.inputs && a.outputs == b.outputs && a.stage == b.stage &&
         a.phase == b.phase && a.draw == b.draw && a.is_transient == b.is_transient &&
         a.transfer_start == b.transfer_start && a.guard == b.guard &&
         a.overwrites == b.overwrites && a.file == b.file && a.line == b.line &&
         a.module == b.module &&
         (a.op->attrs == nullptr || a.op->attrs->equal(a.raw_attrs(), b.raw_attrs(), true));
}

bool runs_alike(const Node& a, const Node& b) {
  return a.stage == b.stage && a.phase == b.phase && a.guard == b.guard &&
         a.is_transient == b.is_transient;
}

namespace {

[[noreturn]] void fail(const Graph& graph, size_t node, const std::string& why) {
  const Node& bad = graph.nodes[node];
  throw InternalError(
      str("[verify] node ", node, " (", bad.op->name, ", ", bad.file, ":", bad.line, "): ", why));
}

void check_range(const Graph& graph, size_t node, ValueId id) {
  if (id < 0 || static_cast<size_t>(id) >= graph.values.size()) {
    fail(graph, node, str("value %", id, " does not exist"));
  }
}

// A guard must be known before the nodes that it guards.
void check_guard(const Graph& graph, size_t index, const IdMap<ValueId, bool>& is_made) {
  const int64_t guard = graph.nodes[index].guard;
  if (guard < 0) return;
  if (guard >= static_cast<int64_t>(graph.outputs.size())) {
    fail(graph, index, str("is guarded by output ", guard, " of ", graph.outputs.size()));
  }
  const ValueId value = graph.outputs[static_cast<size_t>(guard)];
  check_range(graph, index, value);
  const Value& it = graph.value(value);
  if (it.dtype != DType::kBool || !it.shape.empty() || !is_made[value]) {
    fail(graph, index, str("its guard %", value, " is no bool scalar that was made before it"));
  }
}

// What is written over must be like the result.
void check_overwritten(const Graph& graph, size_t index) {
  const Node& node = graph.nodes[index];
  if (node.overwrites < 0) return;
  const auto position = static_cast<size_t>(node.overwrites);
  const bool is_like = position < node.inputs.size() && node.inputs[position] != kNoValue &&
                       node.outputs.size() == 1 && node.op->mutates == 0 &&
                       graph.value(node.inputs[position]) == graph.value(node.outputs[0]);
  if (!is_like) fail(graph, index, str("cannot write over input ", node.overwrites));
}

// How the values differ from what the op's shape rule infers on `rank`; empty if they do not.
std::string difference_on(int64_t rank, const Graph& graph, const Node& node) {
  std::vector<MetaPtr> metas;
  for (const ValueId input : node.inputs) {
    metas.push_back(input == kNoValue ? nullptr : graph.value(input).meta_on(rank));
  }
  InferContext infer(*node.op, metas, node.raw_attrs());
  node.op->infer(infer);
  if (infer.outputs().size() != node.outputs.size())
    return str("has ", node.outputs.size(), " outputs, ", infer.outputs().size(), " are inferred");
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const Value& value = graph.value(node.outputs[i]);
    const OutputSpec& spec = infer.outputs()[i];
    if (spec.shape == value.shape && spec.dtype == value.dtype) continue;
    return str("output ", i, " is inferred as ", spec.shape, " ", spec.dtype, " but the value is ",
               value.shape, " ", value.dtype);
  }
  return "";
}

// The op's shape rule must infer the values' shapes and dtypes. A part that has become local has
// the shape that it has on the rank of the trace, which may be any rank, also one without a part.
void check_inferred(const Graph& graph, size_t index) {
  const Node& node = graph.nodes[index];
  const std::string why = difference_on(0, graph, node);
  if (why.empty()) return;
  for (const ValueId input : node.inputs) {
    if (input == kNoValue || !graph.value(input).placement.defined()) continue;
    const auto& ranks = graph.value(input).placement.ranks();
    std::vector<int64_t> others(ranks.begin(), ranks.end());
    others.push_back(*std::max_element(ranks.begin(), ranks.end()) + 1);
    const bool is_inferred = std::any_of(others.begin(), others.end(), [&](int64_t rank) {
      return difference_on(rank, graph, node).empty();
    });
    if (is_inferred) return;
  }
  fail(graph, index, why);
}

}  // namespace

void verify(const Graph& graph) {
  IdMap<ValueId, bool> is_made(graph.values.size(), false);
  for (const ValueId input : graph.inputs)
    is_made[input] = true;
  for (const Capture& capture : graph.captures) {
    is_made[capture.initial] = true;
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.op->num_inputs != kVariadic &&
        static_cast<int>(node.inputs.size()) != node.op->num_inputs) {
      fail(graph, i,
           str("has ", node.inputs.size(), " inputs, the op takes ", node.op->num_inputs));
    }
    if (node.op->num_outputs != kVariadic &&
        static_cast<int>(node.outputs.size()) != node.op->num_outputs) {
      fail(graph, i, str("has ", node.outputs.size(), " outputs"));
    }
    for (const ValueId input : node.inputs) {
      if (input == kNoValue) continue;
      check_range(graph, i, input);
      if (!is_made[input]) {
        fail(graph, i, str("value %", input, " is used before it is made"));
      }
    }
    for (const ValueId output : node.outputs) {
      check_range(graph, i, output);
      if (is_made[output]) {
        fail(graph, i, str("value %", output, " is made twice"));
      }
      is_made[output] = true;
    }
    check_inferred(graph, i);
    const bool draws = node.draw >= 0 && node.draw < graph.num_draws;
    if (node.op->is_random ? !draws : node.draw != -1) {
      fail(graph, i, str("makes draw ", node.draw, " of ", graph.num_draws));
    }
    check_guard(graph, i, is_made);
    check_overwritten(graph, i);
  }
  for (const ValueId output : graph.outputs) {
    FLOW_ASSERT(is_made[output], "output %", output, " is never made");
  }
  for (const Capture& capture : graph.captures) {
    FLOW_ASSERT(is_made[capture.final_value], "written value %", capture.final_value,
                " is never made");
  }
}

}  // namespace flow::graph
