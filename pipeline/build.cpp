#include "pipeline/build.h"

#include <algorithm>

#include "boxing/redistribute_op.h"
#include "core/error.h"

namespace flow::pipeline {

namespace {

using graph::BufferId;
using graph::Capture;
using graph::Graph;
using graph::kNoBuffer;
using graph::kNoValue;
using graph::Node;
using graph::Program;
using graph::ProgramBuilder;
using graph::Value;
using graph::ValueId;

class Builder {
 public:
  Builder(const Graph& graph, const MicroBatchPlan& plan, const Schedule& schedule, int64_t rank,
          const KernelTable& kernels)
      : graph_(graph),
        plan_(plan),
        schedule_(schedule),
        rank_(rank),
        builder_(rank, kernels),
        whole_(graph.values.size(), kNoBuffer),
        parts_(graph.values.size() * static_cast<size_t>(plan.num_micro_batches), kNoBuffer) {
    check_one_stage();
    find_stages();
    find_sums();
  }

  Program build() {
    builder_.set_num_draws(graph_.num_draws);
    for (const ValueId id : graph_.inputs)
      whole(id) = builder_.add_external(meta(id));
    for (const Capture& capture : graph_.captures) {
      whole(capture.initial) = builder_.add_external(meta(capture.initial));
    }
    for (const ValueId id : graph_.outputs)
      results_.push_back(builder_.add_external(meta(id)));
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (plan_.node_time[i] == NodeTime::kBefore) add_once(graph_.nodes[i]);
    }
    for (const std::vector<Action>& stage : schedule_.actions) {
      for (const Action& action : stage)
        add_action(action);
    }
    builder_.wait_for_sends();
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (plan_.node_time[i] == NodeTime::kAfter) add_once(graph_.nodes[i]);
    }
    write_results();
    return builder_.finish();
  }

 private:
  BufferId& whole(ValueId id) { return whole_[static_cast<size_t>(id)]; }

  BufferId& part(ValueId id, int64_t m) {
    return parts_[static_cast<size_t>(id * plan_.num_micro_batches + m)];
  }

  const Sbp& sbp_of(ValueId id) const { return plan_.value_sbp[static_cast<size_t>(id)]; }

  MetaPtr meta(ValueId id) const { return graph_.value(id).meta_on(rank_); }

  bool is_held(ValueId id) const { return meta(id)->is_held; }

  // Micro-batch m's part of this rank's shard: the axis in time is the innermost.
  MetaPtr part_meta(ValueId id, int64_t m) const {
    const MetaPtr full = meta(id);
    if (!sbp_of(id).is_split() || !full->is_held) return full;
    Shape shape = full->local_shape;
    shape[sbp_of(id).dim()] =
        balanced_part(shape[sbp_of(id).dim()], plan_.num_micro_batches, m).size;
    return local_meta(shape, full->dtype, full->device);
  }

  // A view of micro-batch m's rows of a whole buffer.
  BufferId slice(BufferId base, ValueId id, int64_t m) {
    const MetaPtr full = builder_.buffer(base).meta;
    const int64_t dim = sbp_of(id).dim();
    const Range range = balanced_part(full->local_shape[dim], plan_.num_micro_batches, m);
    return builder_.add_view(base, with_strides(part_meta(id, m), full->strides),
                             range.begin * full->strides[dim]);
  }

  static bool runs_in(const Node& node, const Action& action) {
    const bool is_forward = node.phase == Phase::kForward;
    return node.stage == action.stage && is_forward == (action.kind == ActionKind::kForward);
  }

  // The order of a rank's actions is that of its stage.
  void check_one_stage() const {
    int64_t mine = -1;
    for (const Node& node : graph_.nodes) {
      if (node.op == &boxing::kRedistribute || !is_held(node.outputs[0])) continue;
      if (mine >= 0 && node.stage != mine) {
        throw Unsupported(str("[pipeline] rank ", rank_, " has nodes of stages ", mine, " and ",
                              node.stage, " (", node.op->name, " at ", node.file, ":", node.line,
                              "); give each stage ranks of its own"));
      }
      mine = node.stage;
    }
  }

  // The stage that makes a value (its consumer's for inputs of the step).
  void find_stages() {
    producer_.assign(graph_.values.size(), -1);
    first_use_.assign(graph_.values.size(), -1);
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      for (const ValueId id : node.outputs)
        producer_[static_cast<size_t>(id)] = static_cast<int64_t>(i);
      for (const ValueId id : node.inputs) {
        if (id != kNoValue && first_use_[static_cast<size_t>(id)] < 0) {
          first_use_[static_cast<size_t>(id)] = static_cast<int64_t>(i);
        }
      }
    }
  }

  // Values that are P in time and used whole: summed up while the micro-batches run.
  void find_sums() {
    is_summed_.assign(graph_.values.size(), false);
    const auto mark = [&](ValueId id) {
      if (id != kNoValue && sbp_of(id).is_partial()) is_summed_[static_cast<size_t>(id)] = true;
    };
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (plan_.node_time[i] != NodeTime::kAfter) continue;
      for (const ValueId id : graph_.nodes[i].inputs)
        mark(id);
    }
    for (const ValueId id : graph_.outputs)
      mark(id);
    for (const Capture& capture : graph_.captures)
      mark(capture.final_value);
  }

  void add_once(const Node& node) {
    const bool is_mine = std::any_of(node.outputs.begin(), node.outputs.end(),
                                     [&](ValueId id) { return is_held(id); });
    if (!is_mine) return;
    if (node.op == &boxing::kRedistribute) {
      throw Unsupported(str("[pipeline] a redistribution outside the micro-batches at ", node.file,
                            ":", node.line,
                            " is not supported; keep parameters and their updates "
                            "in one layout"));
    }
    std::vector<BufferId> inputs;
    for (const ValueId id : node.inputs)
      inputs.push_back(id == kNoValue ? kNoBuffer : whole(id));
    std::vector<MetaPtr> metas;
    for (const ValueId id : node.outputs)
      metas.push_back(meta(id));
    const std::vector<BufferId> outputs = builder_.add_node(node, inputs, metas);
    for (size_t i = 0; i < outputs.size(); ++i)
      whole(node.outputs[i]) = outputs[i];
  }

  BufferId input_part(ValueId id, int64_t m) {
    if (id == kNoValue) return kNoBuffer;
    if (part(id, m) == kNoBuffer && whole(id) != kNoBuffer) {
      part(id, m) = sbp_of(id).is_split() ? slice(whole(id), id, m) : whole(id);
    }
    return part(id, m);
  }

  void add_action(const Action& action) {
    const int64_t m = action.micro_batch;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (plan_.node_time[i] == NodeTime::kEach && is_received_in(i, action)) receive(i, m);
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (plan_.node_time[i] != NodeTime::kEach) continue;
      if (node.op == &boxing::kRedistribute) {
        if (is_sent_in(i, action)) send(i, m);
        continue;
      }
      if (runs_in(node, action) && is_held(node.outputs[0])) add_each(node, m);
    }
  }

  void add_each(const Node& node, int64_t m) {
    std::vector<BufferId> inputs;
    for (const ValueId id : node.inputs)
      inputs.push_back(input_part(id, m));
    std::vector<MetaPtr> metas;
    for (const ValueId id : node.outputs)
      metas.push_back(part_meta(id, m));
    const std::vector<BufferId> outputs = builder_.add_node(node, inputs, metas);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const ValueId id = node.outputs[i];
      part(id, m) = outputs[i];
      if (is_summed_[static_cast<size_t>(id)]) add_to_sum(id, outputs[i]);
    }
  }

  void add_to_sum(ValueId id, BufferId addend) {
    if (whole(id) == kNoBuffer) {
      whole(id) = builder_.add_buffer(meta(id));
      builder_.add_copy(addend, whole(id));
    } else {
      builder_.add_sum(addend, whole(id));
    }
  }

  // ---- edges between stages
  bool is_sent_in(size_t edge, const Action& action) const {
    const ValueId source = graph_.nodes[edge].inputs[0];
    const int64_t maker = producer_[static_cast<size_t>(source)];
    const Node& node = graph_.nodes[maker < 0 ? edge : static_cast<size_t>(maker)];
    return is_held(source) && runs_in(node, action);
  }

  bool is_received_in(size_t edge, const Action& action) const {
    const Node& node = graph_.nodes[edge];
    if (node.op != &boxing::kRedistribute || !is_held(node.outputs[0])) return false;
    const int64_t user = first_use_[static_cast<size_t>(node.outputs[0])];
    return user >= 0 && runs_in(graph_.nodes[static_cast<size_t>(user)], action);
  }

  // Both ends of an edge hold one whole copy per rank; each target rank gets its copy from the
  // source rank of the same position, or the last one.
  void check_edge(const Node& node) const {
    const Value& from = graph_.value(node.inputs[0]);
    const Value& to = graph_.value(node.outputs[0]);
    const auto is_whole = [](const Value& value) {
      return std::all_of(value.nd_sbp.begin(), value.nd_sbp.end(),
                         [](const Sbp& s) { return s.is_broadcast(); });
    };
    const auto& targets = to.placement.ranks();
    const bool overlaps = std::any_of(targets.begin(), targets.end(),
                                      [&](int64_t r) { return from.placement.contains(r); });
    if (!is_whole(from) || !is_whole(to) || overlaps) {
      throw Unsupported(str("[pipeline] the redistribution at ", node.file, ":", node.line,
                            " goes from ", from.nd_sbp, " on ", from.placement, " to ", to.nd_sbp,
                            " on ", to.placement,
                            "; edges between stages are B on disjoint ranks"));
    }
  }

  int64_t source_of(const Node& node, int64_t target) const {
    const auto& sources = graph_.value(node.inputs[0]).placement.ranks();
    const int64_t position = graph_.value(node.outputs[0]).placement.position(target);
    return sources[static_cast<size_t>(
        std::min<int64_t>(position, static_cast<int64_t>(sources.size()) - 1))];
  }

  int64_t tag(size_t edge, int64_t m) const {
    return static_cast<int64_t>(edge) * plan_.num_micro_batches + m;
  }

  void send(size_t edge, int64_t m) {
    const Node& node = graph_.nodes[edge];
    check_edge(node);
    for (const int64_t target : graph_.value(node.outputs[0]).placement.ranks()) {
      if (source_of(node, target) != rank_) continue;
      const BufferId buffer = builder_.contiguous(input_part(node.inputs[0], m));
      builder_.add_send(buffer, target, tag(edge, m));
    }
  }

  void receive(size_t edge, int64_t m) {
    const Node& node = graph_.nodes[edge];
    check_edge(node);
    const ValueId id = node.outputs[0];
    part(id, m) = builder_.add_buffer(part_meta(id, m));
    builder_.add_recv(part(id, m), source_of(node, rank_), tag(edge, m));
    if (is_summed_[static_cast<size_t>(id)]) add_to_sum(id, part(id, m));
  }

  void write_results() {
    for (size_t i = 0; i < results_.size(); ++i) {
      const ValueId id = graph_.outputs[i];
      if (!is_held(id)) continue;
      if (!sbp_of(id).is_split()) {
        builder_.add_copy(whole(id), results_[i]);
        continue;
      }
      for (int64_t m = 0; m < plan_.num_micro_batches; ++m) {
        builder_.add_copy(input_part(id, m), slice(results_[i], id, m));
      }
    }
    for (const Capture& capture : graph_.captures) {
      if (is_held(capture.initial) && whole(capture.final_value) != whole(capture.initial)) {
        builder_.add_copy(whole(capture.final_value), whole(capture.initial));
      }
    }
  }

  const Graph& graph_;
  const MicroBatchPlan& plan_;
  const Schedule& schedule_;
  int64_t rank_;
  ProgramBuilder builder_;
  std::vector<BufferId> whole_;  // by value: all micro-batches together
  std::vector<BufferId> parts_;  // by value and micro-batch
  std::vector<BufferId> results_;
  std::vector<int64_t> producer_, first_use_;  // node index by value, -1: none
  std::vector<bool> is_summed_;
};

}  // namespace

Program build_program(const Graph& graph, const MicroBatchPlan& plan, const Schedule& schedule,
                      int64_t rank, const KernelTable& kernels) {
  int64_t stages = 1;
  for (const Node& node : graph.nodes)
    stages = std::max(stages, node.stage + 1);
  if (schedule.num_stages != stages || schedule.num_micro_batches != plan.num_micro_batches) {
    throw InvalidArgument(str("[pipeline] the graph has ", stages, " stages and ",
                              plan.num_micro_batches, " micro-batches, the schedule ",
                              schedule.num_stages, " and ", schedule.num_micro_batches));
  }
  validate(schedule);
  return Builder(graph, plan, schedule, rank, kernels).build();
}

}  // namespace flow::pipeline
