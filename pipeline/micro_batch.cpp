#include "pipeline/micro_batch.h"

#include <algorithm>

#include "boxing/redistribute_op.h"
#include "core/error.h"
#include "graph/ir/graph_uses.h"
#include "graph/ir/place.h"
#include "ops/elementwise/cast_op.h"
#include "pipeline/batch_cut.h"
#include "pipeline/batch_statistics.h"

namespace flow::pipeline {

namespace {

using graph::Graph;
using graph::IdMap;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;

// Operations per element read: enough for a reduction or a function, not for a matrix product.
constexpr double kCheapFlops = 24;

class Planner {
 public:
  Planner(const Graph& graph, int64_t num_micro_batches, size_t num_whole)
      : graph_(graph),
        uses_(graph),
        is_written_(graph.values.size(), false),
        feeds_statistics_(graph.values.size(), false),
        is_hoisted_(graph.nodes.size(), false),
        is_forced_(graph.nodes.size(), false) {
    cut_.num_micro_batches = num_micro_batches;
    for (size_t i = 0; i + num_whole < graph.inputs.size(); ++i) {
      const ValueId input = graph.inputs[i];
      if (!graph.value(input).shape.empty()) batch_.push_back(input);  // a scalar has no samples
    }
    cut_.batch = cut_batch(graph, batch_, num_micro_batches);
    for (const graph::Capture& capture : graph.captures) {
      const bool is_written = capture.initial != capture.final_value;
      is_written_[capture.initial] = is_written;
    }
    find_sums_of_statistics();
  }

  MicroBatchCut cut() {
    while (!classify_all()) {
    }
    if (cut_.batch.runs.size() == 1) fit_whole_values();
    repeat_transient();
    if (cut_.num_micro_batches > 1) {
      check_results();
      check_counts();
    }
    return std::move(cut_);
  }

 private:
  Sbp& sbp_of(ValueId id) { return cut_.value_sbp[id]; }

  // Returns false if it found out that more nodes have to run before the micro-batches.
  bool classify_all() {
    cut_.value_sbp.assign(graph_.values.size(), sbp::broadcast);
    cut_.is_per_micro_batch.assign(graph_.values.size(), false);
    cut_.node_time.clear();
    cut_.input_sbp.assign(graph_.nodes.size(), {});
    cut_.is_positional.assign(graph_.nodes.size(), false);
    is_late_.assign(graph_.values.size(), false);
    is_whole_.assign(graph_.values.size(), false);
    for (const ValueId input : batch_) {
      sbp_of(input) = sbp::split(0);
      is_whole_[input] = true;
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!classify(i)) return false;
    }
    return true;
  }

  // The layouts of a node's inputs along the axis.
  struct Inputs {
    std::vector<Sbp> sbp;
    bool has_split = false, has_partial = false, has_own = false, has_late = false;
    bool has_parts = false;      // one is split and does not exist whole
    bool is_of_stage = true;     // what differs between micro-batches comes from the node's stage
    bool is_joined = false;      // its addends come from several stages
    bool is_positional = false;  // set by match(): the kernel needs the positions of its parts
  };

  Inputs inputs_of(const Node& node) const {
    Inputs in;
    int64_t stage = -1;
    for (const ValueId id : node.inputs) {
      in.sbp.push_back(id == kNoValue ? sbp::broadcast : cut_.sbp_of(id));
      if (id == kNoValue) continue;
      const Node* maker = uses_.maker_node(id);
      const int64_t from = maker == nullptr ? node.stage : maker->stage;
      in.has_split |= in.sbp.back().is_split();
      in.has_late |= is_late_[id];
      in.has_parts |= in.sbp.back().is_split() && !is_whole_[id];
      if (cut_.is_per_micro_batch_of(id)) {
        in.has_own = true;
        in.is_of_stage &= from == node.stage;
      }
      if (!in.sbp.back().is_partial()) continue;
      in.is_joined |= in.has_partial && from != stage;
      in.has_partial = true;
      stage = from;
    }
    return in;
  }

  bool classify(size_t index) {
    const Node& node = graph_.nodes[index];
    Inputs in = inputs_of(node);
    in.has_late |= node.guard >= 0;  // its guard is known after all micro-batches
    if (node.op->micro_batch.writes_in_turn) {
      if (in.has_split || in.has_partial || depends_on_the_end(node)) refuse(node, true);
      set_once(node, NodeTime::kSequential);
      return true;
    }
    if (!in.has_split && !in.has_partial && !in.has_own) {
      set_once(node, in.has_late ? NodeTime::kAfter : NodeTime::kBefore);
      return true;
    }
    // A batch on another placement is moved at once.
    const bool moves_input = node.op == &boxing::kRedistribute && in.has_split && !in.has_parts;
    if (is_hoisted_[index] || moves_input) {
      set_hoisted(node, in.sbp);
      return true;
    }
    const bool is_single = cut_.num_micro_batches == 1;
    const bool is_of_own = in.has_own && !in.has_split && !in.has_partial && !in.has_late;
    const bool may_wait = is_single && (node.op->mutates != 0 || !in.is_of_stage);
    if ((is_forced_[index] && !in.has_late) || (is_of_own && !may_wait)) {
      set_each(index, in.sbp, {});
      return true;
    }
    std::vector<Sbp> outputs;
    const bool is_cut = in.has_split || in.has_partial;
    if (is_cut && !in.has_late && !adds_of_stages(node, in)) outputs = match(node, in);
    if (!outputs.empty()) {
      set_each(index, in.sbp, outputs);
      cut_.is_positional[index] = in.is_positional;
      return true;
    }
    const bool needs_sum = in.has_late || in.has_partial;
    if (needs_sum && in.has_split && hoist_sums(node)) return false;
    if ((needs_sum || is_single) && !in.has_parts && (is_single || !in.has_own)) {
      set_once(node, NodeTime::kAfter);
      return true;
    }
    if (is_single && in.has_late && force_inputs(node)) return false;
    if (is_single) {
      if (in.has_late) {
        set_once(node, NodeTime::kAfter);
      } else {
        set_each(index, in.sbp, {});
      }
      return true;
    }
    refuse(node, needs_sum);
  }

  // Addends of several stages are added up after all actions, so that no stage waits for another.
  bool adds_of_stages(const Node& node, const Inputs& in) const {
    return in.is_joined && !in.has_split && !in.has_own && !feeds_statistics_[node.outputs[0]];
  }

  // The node runs in each micro-batch. Without `outputs`, each micro-batch has its own values.
  void set_each(size_t index, const std::vector<Sbp>& inputs, const std::vector<Sbp>& outputs) {
    cut_.node_time.push_back(NodeTime::kEach);
    cut_.input_sbp[index] = inputs;
    const Node& node = graph_.nodes[index];
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const Sbp& sbp = outputs.empty() ? sbp::broadcast : outputs[i];
      sbp_of(node.outputs[i]) = sbp;
      cut_.is_per_micro_batch[node.outputs[i]] = sbp.is_broadcast();
    }
  }

  void set_once(const Node& node, NodeTime time) {
    cut_.node_time.push_back(time);
    for (const ValueId id : node.outputs)
      is_late_[id] = time == NodeTime::kSequential || time == NodeTime::kAfter;
  }

  // The node runs on the whole batch; its split outputs can be taken in parts as well.
  void set_hoisted(const Node& node, const std::vector<Sbp>& inputs) {
    cut_.node_time.push_back(NodeTime::kBefore);
    Inputs in;
    in.sbp = inputs;
    const std::vector<Sbp> outputs = match(node, in);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].is_split()) continue;
      sbp_of(node.outputs[i]) = outputs[i];
      is_whole_[node.outputs[i]] = true;
    }
  }

  // Calls `ask` with the context in which the op's rules see the node.
  template <class Ask>
  auto asking(const Node& node, const Ask& ask) const {
    std::vector<MetaPtr> metas;
    for (const ValueId id : node.inputs) {
      metas.push_back(id == kNoValue ? nullptr : graph_.value(id).meta_on(0));
    }
    InferContext infer(*node.op, metas, node.raw_attrs());
    node.op->infer(infer);
    SbpContext ctx(*node.op, metas, node.raw_attrs(), infer.outputs(), cut_.batch.num_samples);
    return ask(ctx);
  }

  // The outputs' layouts along the axis, or none; of a B output each micro-batch has its own. Sets
  // the inputs' layouts to those in which the node takes them, and whether it needs positions.
  std::vector<Sbp> match(const Node& node, Inputs& in) const {
    const bool feeds_statistics =
        in.has_partial && !in.has_split && feeds_statistics_[node.outputs[0]];
    if (node.op == &boxing::kRedistribute) {
      // Sums are moved once. Those of a micro-batch's statistics and of transient nodes are moved
      // addend by addend.
      const bool moves_addends = node.is_transient && in.sbp[0] == sbp::partial_sum;
      return in.sbp[0].is_split() || moves_addends || feeds_statistics ? in.sbp
                                                                       : std::vector<Sbp>{};
    }
    if (node.op == &ops::kCast && feeds_statistics) return in.sbp;
    if (takes_sums_apart(node)) return {sbp::broadcast};
    const auto own_batch_sbp = node.op->micro_batch.own_batch_sbp;
    const bool makes_own = in.has_own || own_batch_sbp != nullptr;
    return asking(node, [&](SbpContext& ctx) -> std::vector<Sbp> {
      node.op->sbp(ctx);
      if (own_batch_sbp != nullptr) own_batch_sbp(ctx);
      const std::vector<SbpSignature>& all = ctx.signatures();
      for (const bool is_positional : {false, true}) {
        for (const bool takes_parts : {false, true}) {
          const auto found = std::find_if(all.begin(), all.end(), [&](const auto& signature) {
            return signature.is_positional == is_positional &&
                   fits(node, signature, in.sbp, takes_parts, makes_own);
          });
          if (found == all.end()) continue;
          in.sbp = found->inputs;
          in.is_positional = is_positional && cut_.num_micro_batches > 1;
          return found->outputs;
        }
      }
      return {};
    });
  }

  // Transient nodes that only micro-batches read run again for each of them.
  void repeat_transient() {
    cut_.is_made_each.assign(graph_.values.size(), false);
    IdMap<ValueId, bool> is_read_once(graph_.values.size(), false);
    const auto read_once = [&](ValueId id) {
      if (id != kNoValue) is_read_once[id] = true;
    };
    for (const ValueId id : graph_.outputs)
      read_once(id);
    for (const graph::Capture& capture : graph_.captures)
      read_once(capture.final_value);
    for (size_t i = graph_.nodes.size(); i-- > 0;) {
      const Node& node = graph_.nodes[i];
      NodeTime& time = cut_.node_time[i];
      const bool repeats = node.is_transient && time == NodeTime::kBefore && !is_hoisted_[i] &&
                           std::none_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) {
                             return is_read_once[id] || sbp_of(id).is_split();
                           });
      if (repeats) {
        time = NodeTime::kEach;
        cut_.input_sbp[i].assign(node.inputs.size(), sbp::broadcast);
        for (const ValueId id : node.outputs)
          cut_.is_made_each[id] = true;
      } else if (time != NodeTime::kEach) {
        for (const ValueId id : node.inputs)
          read_once(id);
      }
    }
  }

  bool holds_samples(ValueId id, const Sbp& sbp) const {
    return !sbp.is_split() || graph_.value(id).shape[sbp.dim()] % cut_.batch.num_samples == 0;
  }

  bool fits(const Node& node, const SbpSignature& signature, const std::vector<Sbp>& inputs,
            bool takes_parts, bool makes_own) const {
    // Positional kernels may run several times for a micro-batch, which would add up its addends.
    const auto is_partial = [](const Sbp& sbp) { return sbp.is_partial(); };
    if (signature.is_positional && cut_.num_micro_batches > 1 &&
        std::any_of(signature.inputs.begin(), signature.inputs.end(), is_partial)) {
      return false;
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool is_taken_apart =
          takes_parts && inputs[i].is_broadcast() && node.inputs[i] != kNoValue &&
          !cut_.is_per_micro_batch_of(node.inputs[i]) && signature.inputs[i].is_split() &&
          holds_samples(node.inputs[i], signature.inputs[i]);
      if (!(signature.inputs[i] == inputs[i]) && !is_taken_apart) return false;
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const Sbp& output = signature.outputs[i];
      const bool is_known =
          output.is_split() || output == sbp::partial_sum || (makes_own && output.is_broadcast());
      if (!is_known || !holds_samples(node.outputs[i], output)) return false;
      // A draw belongs to a logical element, so only parts of a split result can be drawn.
      if (node.draw >= 0 && !output.is_split() && cut_.num_micro_batches > 1) return false;
    }
    return true;
  }

  // ---- statistics of a micro-batch

  // Marks the values between the sums over a micro-batch's samples and the moments computed from
  // them, in forward and in backward.
  void find_sums_of_statistics() {
    for (size_t i = graph_.nodes.size(); i-- > 0;) {
      const Node& node = graph_.nodes[i];
      if (node.op->micro_batch.takes_sums) {
        feeds_statistics_[node.inputs[0]] = true;
        continue;
      }
      const bool feeds = !node.op->micro_batch.makes_sums &&
                         std::any_of(node.outputs.begin(), node.outputs.end(),
                                     [&](ValueId id) { return feeds_statistics_[id]; });
      for (const ValueId id : node.inputs) {
        if (feeds && id != kNoValue) feeds_statistics_[id] = true;
      }
    }
  }

  // True for the moments of a micro-batch's sums, and for the gradients of these sums.
  bool takes_sums_apart(const Node& node) const {
    if (!node.op->micro_batch.takes_sums || !cut_.sbp_of(node.inputs[0]).is_partial()) return false;
    return node.inputs.size() == 1 || cut_.is_per_micro_batch_of(node.inputs[1]);
  }

  bool depends_on_the_end(const Node& node) const {
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
      const int64_t maker = uses_.maker(id);
      return maker >= 0 && cut_.node_time[static_cast<size_t>(maker)] == NodeTime::kAfter;
    });
  }

  // Inputs that ranks hold whole may be cut anywhere, but not what else exists whole and is split
  // over ranks: values that micro-batches take parts of, such as constants with a row for each
  // sample and what is computed before the first micro-batch, and outputs, which are put together
  // from the samples that a micro-batch has on a rank.
  void fit_whole_values() {
    const auto fit = [&](ValueId id, const Sbp& sbp) {
      if (sbp.is_split()) refine_cut(graph_.value(id), sbp.dim(), cut_.batch);
    };
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      for (size_t k = 0; k < cut_.input_sbp[i].size(); ++k) {
        const ValueId id = graph_.nodes[i].inputs[k];
        if (id == kNoValue || (sbp_of(id).is_split() && !is_whole_[id])) continue;
        fit(id, cut_.input_sbp[i][k]);
      }
    }
    for (const ValueId id : graph_.outputs)
      fit(id, sbp_of(id));
  }

  // A step cannot return a value of which each micro-batch has its own.
  void check_results() const {
    const auto check = [&](ValueId id) {
      if (!cut_.is_per_micro_batch_of(id)) return;
      const Node& node = *uses_.maker_node(id);
      graph::throw_at<Unsupported>(
          node, str("[micro-batch] ", node.op->name, " at ", node.file, ":", node.line,
                    " computes statistics that differ between micro-batches, and the step "
                    "returns or keeps them; do not return them, or use one micro-batch"));
    };
    for (const ValueId id : graph_.outputs)
      check(id);
    for (const graph::Capture& capture : graph_.captures)
      check(capture.final_value);
  }

  void check_counts() const {
    for (const size_t i : nodes_with_own_statistics(graph_, cut_)) {
      const Node& node = graph_.nodes[i];
      for (int64_t m = 0; m < cut_.num_micro_batches; ++m) {
        const int64_t count = elements_of_statistics(graph_, node, cut_.batch, m);
        if (count > 1) continue;
        graph::throw_at<InvalidArgument>(
            node, str("[micro-batch] ", name_of_statistics(node),
                      " needs more than one value a channel; micro-batch ", m, " of ",
                      cut_.num_micro_batches, " has ", count,
                      "; use fewer micro-batches or a larger batch"));
      }
    }
  }

  // With one micro-batch every value is complete: moves the nodes that this one waits for into it.
  bool force_inputs(const Node& node) {
    bool has_forced = false;
    for (const ValueId id : node.inputs) {
      if (id == kNoValue || !is_late_[id]) continue;
      const auto maker = static_cast<size_t>(uses_.maker(id));
      if (cut_.node_time[maker] != NodeTime::kAfter || is_forced_[maker]) continue;
      is_forced_[maker] = has_forced = true;
      force_inputs(graph_.nodes[maker]);
    }
    return has_forced;
  }

  // ---- sums that the micro-batches need

  // Moves the sums that the node waits for before the micro-batches, where that is possible.
  bool hoist_sums(const Node& node) {
    IdMap<ValueId, bool> is_seen(graph_.values.size(), false);
    std::vector<ValueId> todo(node.inputs);
    bool has_hoisted = false;
    while (!todo.empty()) {
      const ValueId id = todo.back();
      todo.pop_back();
      if (id == kNoValue || is_seen[id]) continue;
      is_seen[id] = true;
      const Node* late = uses_.maker_node(id);
      if (late == nullptr) continue;
      if (sbp_of(id).is_partial()) {
        has_hoisted |= hoist(id);
      } else if (is_late_[id]) {
        todo.insert(todo.end(), late->inputs.begin(), late->inputs.end());
      }
    }
    return has_hoisted;
  }

  // True if the node costs little more than a pass over its data.
  bool is_cheap(const Node& node) const {
    if (node.op->cost == nullptr) return true;
    int64_t elements = 0;
    for (const ValueId id : node.inputs)
      elements += id == kNoValue ? 0 : graph_.value(id).shape.numel();
    const double flops = asking(node, [&](SbpContext& ctx) { return node.op->cost(ctx).flops; });
    return flops <= kCheapFlops * static_cast<double>(elements);
  }

  // Marks all nodes that a sum is computed from. Returns false if one of them must not run early:
  // it depends on a tensor that the step trains, or it is the network itself.
  bool hoist(ValueId sum) {
    std::vector<bool> is_seen(graph_.nodes.size(), false);
    std::vector<ValueId> todo{sum};
    while (!todo.empty()) {
      const ValueId id = todo.back();
      todo.pop_back();
      if (id == kNoValue) continue;
      if (is_written_[id]) return false;
      const int64_t maker = uses_.maker(id);
      if (maker < 0 || is_seen[static_cast<size_t>(maker)]) continue;
      const Node& node = graph_.nodes[static_cast<size_t>(maker)];
      const MicroBatchRules& rules = node.op->micro_batch;
      if (node.op->mutates != 0 || rules.takes_sums || !is_cheap(node)) return false;
      if (rules.own_batch_sbp != nullptr) return false;
      is_seen[static_cast<size_t>(maker)] = true;
      todo.insert(todo.end(), node.inputs.begin(), node.inputs.end());
    }
    for (size_t i = 0; i < is_seen.size(); ++i)
      is_hoisted_[i] = is_hoisted_[i] || is_seen[i];
    return true;
  }

  [[noreturn]] void refuse(const Node& node, bool needs_sum) const {
    const std::string op = str("[micro-batch] ", node.op->name, " at ", node.file, ":", node.line);
    const bool reads_written = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
      const int64_t maker = id == kNoValue ? -1 : uses_.maker(id);
      return maker >= 0 && cut_.node_time[static_cast<size_t>(maker)] == NodeTime::kSequential;
    });
    if (reads_written) {
      graph::throw_at<Unsupported>(
          node, str(op,
                    " reads running statistics that a batch norm of the same step has "
                    "written, which happens after all micro-batches; read them in another "
                    "step"));
    }
    if (needs_sum) {
      graph::throw_at<Unsupported>(
          node, str(op,
                    " needs a sum over all micro-batches while they run, and that depends "
                    "on more than inputs; use one micro-batch"));
    }
    if (node.draw >= 0) {
      graph::throw_at<Unsupported>(
          node, str(op,
                    " draws one random value from many samples, which micro-batches "
                    "cannot; use one micro-batch"));
    }
    graph::throw_at<Unsupported>(
        node, str(op,
                  " has no rule for inputs split into micro-batches, which cut dim 0 of each input "
                  "of build(); make an input that is no part of the batch, such as a mask, a "
                  "member of the graph, run the op outside, or use one micro-batch"));
  }

  const Graph& graph_;
  graph::GraphUses uses_;
  IdMap<ValueId, bool> is_written_;  // captures that the step writes
  IdMap<ValueId, bool> feeds_statistics_;
  std::vector<bool> is_hoisted_;   // nodes that read the batch but run before the micro-batches
  std::vector<bool> is_forced_;    // nodes that run in the only micro-batch
  std::vector<ValueId> batch_;     // inputs that are cut
  IdMap<ValueId, bool> is_late_;   // values made after all micro-batches
  IdMap<ValueId, bool> is_whole_;  // split values that exist whole before the micro-batches
  MicroBatchCut cut_;
};

}  // namespace

MicroBatchCut plan_micro_batches(const Graph& graph, int64_t num_micro_batches, size_t num_whole) {
  return Planner(graph, num_micro_batches, num_whole).cut();
}

}  // namespace flow::pipeline
