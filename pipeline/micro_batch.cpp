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

// For each element that is read: that of a reduction or a function, not of a product of matrices.
constexpr double kCheapFlops = 24;

class Planner {
 public:
  Planner(const Graph& graph, int64_t num_micro_batches, size_t num_whole)
      : graph_(graph),
        maker_(graph.values.size(), -1),
        is_written_(graph.values.size(), false),
        is_hoisted_(graph.nodes.size(), false) {
    plan_.num_micro_batches = num_micro_batches;
    for (size_t i = 0; i + num_whole < graph.inputs.size(); ++i) {
      const ValueId input = graph.inputs[i];
      if (!graph.value(input).shape.empty()) batch_.push_back(input);  // a scalar has no samples
    }
    plan_.cut = cut_batch(graph, batch_, num_micro_batches);
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      for (const ValueId id : graph.nodes[i].outputs)
        maker_[static_cast<size_t>(id)] = static_cast<int64_t>(i);
    }
    for (const graph::Capture& capture : graph.captures) {
      const bool is_written = capture.initial != capture.final_value;
      is_written_[static_cast<size_t>(capture.initial)] = is_written;
    }
  }

  MicroBatchPlan plan() {
    while (!classify_all()) {
    }
    repeat_transient();
    return std::move(plan_);
  }

 private:
  Sbp& sbp_of(ValueId id) { return plan_.value_sbp[static_cast<size_t>(id)]; }

  // False: more has to be computed before the micro-batches than was known.
  bool classify_all() {
    plan_.value_sbp.assign(graph_.values.size(), sbp::broadcast);
    plan_.node_time.clear();
    plan_.input_sbp.assign(graph_.nodes.size(), {});
    is_late_.assign(graph_.values.size(), false);
    is_whole_.assign(graph_.values.size(), false);
    for (const ValueId input : batch_) {
      sbp_of(input) = sbp::split(0);
      is_whole_[static_cast<size_t>(input)] = true;
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!classify(i)) return false;
    }
    return true;
  }

  bool classify(size_t index) {
    const Node& node = graph_.nodes[index];
    std::vector<Sbp> inputs;
    bool has_split = false, has_partial = false, has_late = false;
    bool has_parts = false;  // what exists in parts only
    for (const ValueId id : node.inputs) {
      inputs.push_back(id == kNoValue ? sbp::broadcast : sbp_of(id));
      if (id == kNoValue) continue;
      has_split |= inputs.back().is_split();
      has_partial |= inputs.back().is_partial();
      has_late |= is_late_[static_cast<size_t>(id)];
      has_parts |= inputs.back().is_split() && !is_whole_[static_cast<size_t>(id)];
    }
    if (!has_split && !has_partial) {
      set_once(node, has_late ? NodeTime::kAfter : NodeTime::kBefore);
      return true;
    }
    // Inputs that lie elsewhere are brought over at once.
    const bool moves_input = node.op == &boxing::kRedistribute && has_split && !has_parts;
    if (is_hoisted_[index] || moves_input) {
      set_hoisted(node, inputs);
      return true;
    }
    std::vector<Sbp> outputs;
    if (!has_late) outputs = match(node, inputs);
    if (!outputs.empty()) {
      plan_.node_time.push_back(NodeTime::kEach);
      plan_.input_sbp[index] = std::move(inputs);
      for (size_t i = 0; i < outputs.size(); ++i)
        sbp_of(node.outputs[i]) = outputs[i];
      return true;
    }
    const bool needs_sum = has_late || has_partial;
    if (needs_sum && has_split && hoist_sums(node)) return false;
    if (needs_sum && !has_parts) {
      set_once(node, NodeTime::kAfter);
      return true;
    }
    refuse(node, needs_sum);
  }

  void set_once(const Node& node, NodeTime time) {
    plan_.node_time.push_back(time);
    for (const ValueId id : node.outputs)
      is_late_[static_cast<size_t>(id)] = time == NodeTime::kAfter;
  }

  // Computed whole, and to be had in parts too where it is split.
  void set_hoisted(const Node& node, std::vector<Sbp> inputs) {
    plan_.node_time.push_back(NodeTime::kBefore);
    const std::vector<Sbp> outputs = match(node, inputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].is_split()) continue;
      sbp_of(node.outputs[i]) = outputs[i];
      is_whole_[static_cast<size_t>(node.outputs[i])] = true;
    }
  }

  // Calls `ask` with what the op's rules see of the node.
  template <class Ask>
  auto asking(const Node& node, const Ask& ask) const {
    std::vector<MetaPtr> metas;
    for (const ValueId id : node.inputs) {
      metas.push_back(id == kNoValue ? nullptr : graph_.value(id).meta_on(0));
    }
    InferContext infer(*node.op, metas, node.raw_attrs());
    node.op->infer(infer);
    SbpContext ctx(*node.op, metas, node.raw_attrs(), infer.outputs(), plan_.cut.num_samples);
    return ask(ctx);
  }

  // The outputs' layouts along the axis, or none. `inputs` become those that the node takes.
  std::vector<Sbp> match(const Node& node, std::vector<Sbp>& inputs) const {
    if (node.op == &boxing::kRedistribute) {
      // Sums are moved once, or addend by addend.
      const bool moves_addends = node.is_transient && inputs[0] == sbp::partial_sum;
      return inputs[0].is_split() || moves_addends ? inputs : std::vector<Sbp>{};
    }
    return asking(node, [&](SbpContext& ctx) -> std::vector<Sbp> {
      node.op->sbp(ctx);
      for (const bool takes_parts : {false, true}) {
        for (const SbpSignature& signature : ctx.signatures()) {
          if (!fits(node, signature, inputs, takes_parts)) continue;
          inputs = signature.inputs;
          return signature.outputs;
        }
      }
      return {};
    });
  }

  // Transient nodes that only micro-batches read run for each.
  void repeat_transient() {
    plan_.is_made_each.assign(graph_.values.size(), false);
    std::vector<bool> is_read_once(graph_.values.size(), false);
    const auto read_once = [&](ValueId id) {
      if (id != kNoValue) is_read_once[static_cast<size_t>(id)] = true;
    };
    for (const ValueId id : graph_.outputs)
      read_once(id);
    for (const graph::Capture& capture : graph_.captures)
      read_once(capture.final_value);
    for (size_t i = graph_.nodes.size(); i-- > 0;) {
      const Node& node = graph_.nodes[i];
      NodeTime& time = plan_.node_time[i];
      const bool repeats = node.is_transient && time == NodeTime::kBefore && !is_hoisted_[i] &&
                           std::none_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) {
                             return is_read_once[static_cast<size_t>(id)] || sbp_of(id).is_split();
                           });
      if (repeats) {
        time = NodeTime::kEach;
        plan_.input_sbp[i].assign(node.inputs.size(), sbp::broadcast);
        for (const ValueId id : node.outputs)
          plan_.is_made_each[static_cast<size_t>(id)] = true;
      } else if (time != NodeTime::kEach) {
        for (const ValueId id : node.inputs)
          read_once(id);
      }
    }
  }

  bool holds_samples(ValueId id, const Sbp& sbp) const {
    return !sbp.is_split() || graph_.value(id).shape[sbp.dim()] % plan_.cut.num_samples == 0;
  }

  bool fits(const Node& node, const SbpSignature& signature, const std::vector<Sbp>& inputs,
            bool takes_parts) const {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool is_taken_apart = takes_parts && inputs[i].is_broadcast() &&
                                  node.inputs[i] != kNoValue && signature.inputs[i].is_split() &&
                                  holds_samples(node.inputs[i], signature.inputs[i]);
      if (!(signature.inputs[i] == inputs[i]) && !is_taken_apart) return false;
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const Sbp& output = signature.outputs[i];
      const bool is_known = output.is_split() || output == sbp::partial_sum;
      if (!is_known || !holds_samples(node.outputs[i], output)) return false;
      // Draws are those of the logical elements, which parts of a result know.
      if (node.draw >= 0 && !output.is_split() && plan_.num_micro_batches > 1) return false;
    }
    return true;
  }

  // ---- sums that the micro-batches need

  // Has the sums that the node waits for computed before the micro-batches, where that can be.
  bool hoist_sums(const Node& node) {
    std::vector<bool> is_seen(graph_.values.size(), false);
    std::vector<ValueId> todo(node.inputs);
    bool has_hoisted = false;
    while (!todo.empty()) {
      const ValueId id = todo.back();
      todo.pop_back();
      if (id == kNoValue || is_seen[static_cast<size_t>(id)]) continue;
      is_seen[static_cast<size_t>(id)] = true;
      const int64_t maker = maker_[static_cast<size_t>(id)];
      if (maker < 0) continue;
      if (sbp_of(id).is_partial()) {
        has_hoisted |= hoist(id);
      } else if (is_late_[static_cast<size_t>(id)]) {
        const Node& late = graph_.nodes[static_cast<size_t>(maker)];
        todo.insert(todo.end(), late.inputs.begin(), late.inputs.end());
      }
    }
    return has_hoisted;
  }

  // Little more than a pass over the data.
  bool is_cheap(const Node& node) const {
    if (node.op->cost == nullptr) return true;
    int64_t elements = 0;
    for (const ValueId id : node.inputs)
      elements += id == kNoValue ? 0 : graph_.value(id).shape.numel();
    const double flops = asking(node, [&](SbpContext& ctx) { return node.op->cost(ctx).flops; });
    return flops <= kCheapFlops * static_cast<double>(elements);
  }

  // Marks all that a sum is made from; false where something of it must not be computed early: it
  // depends on what the step trains, or is the network itself.
  bool hoist(ValueId sum) {
    std::vector<bool> is_seen(graph_.nodes.size(), false);
    std::vector<ValueId> todo{sum};
    while (!todo.empty()) {
      const ValueId id = todo.back();
      todo.pop_back();
      if (id == kNoValue) continue;
      if (is_written_[static_cast<size_t>(id)]) return false;
      const int64_t maker = maker_[static_cast<size_t>(id)];
      if (maker < 0 || is_seen[static_cast<size_t>(maker)]) continue;
      const Node& node = graph_.nodes[static_cast<size_t>(maker)];
      if (node.op->mutates != 0 || !is_cheap(node)) return false;
      is_seen[static_cast<size_t>(maker)] = true;
      todo.insert(todo.end(), node.inputs.begin(), node.inputs.end());
    }
    for (size_t i = 0; i < is_seen.size(); ++i)
      is_hoisted_[i] = is_hoisted_[i] || is_seen[i];
    return true;
  }

  [[noreturn]] void refuse(const Node& node, bool needs_sum) const {
    const std::string op = str("[micro-batch] ", node.op->name, " at ", node.file, ":", node.line);
    if (needs_sum) {
      throw Unsupported(str(op,
                            " needs a sum over all micro-batches while they run, and that depends "
                            "on more than inputs; use one micro-batch"));
    }
    if (node.draw >= 0) {
      throw Unsupported(str(op,
                            " draws one random value from many samples, which micro-batches "
                            "cannot; use one micro-batch"));
    }
    throw Unsupported(str(op,
                          " has no rule for inputs split into micro-batches; run it outside the "
                          "graph or use one micro-batch"));
  }

  const Graph& graph_;
  std::vector<int64_t> maker_;    // node by value, -1: none
  std::vector<bool> is_written_;  // captures that the step writes
  std::vector<bool> is_hoisted_;  // nodes that run before though they read the batch
  std::vector<ValueId> batch_;    // inputs that are cut
  std::vector<bool> is_late_;     // values made after all micro-batches
  std::vector<bool> is_whole_;    // split values that exist whole before the micro-batches
  MicroBatchPlan plan_;
};

}  // namespace

MicroBatchPlan plan_micro_batches(const Graph& graph, int64_t num_micro_batches, size_t num_whole) {
  return Planner(graph, num_micro_batches, num_whole).plan();
}

}  // namespace flow::pipeline
