#include "pipeline/build.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <limits>
#include <map>

#include "boxing/layout.h"
#include "boxing/redistribute_op.h"
#include "core/error.h"
#include "graph/ir/graph_uses.h"
#include "graph/program/builder.h"
#include "pipeline/batch_statistics.h"
#include "pipeline/draws.h"
#include "pipeline/edges.h"
#include "pipeline/part_buffers.h"
#include "pipeline/simulate.h"
#include "pipeline/stages.h"

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

constexpr size_t kNever = std::numeric_limits<size_t>::max();

class Builder {
 public:
  Builder(const Graph& graph, const MicroBatchPlan& plan, const Schedule& schedule,
          const StagePlan& stages, int64_t rank, const KernelTable& kernels)
      : graph_(graph),
        plan_(plan),
        stages_(stages),
        rank_(rank),
        builder_(rank, kernels),
        buffers_(graph, plan, builder_, rank),
        uses_(graph) {
    for (const TimedAction& timed : simulate(schedule).actions) {
      position_[timed.action] = order_.size();
      order_.push_back(timed.action);
    }
    find_uses();
    find_incoming();
  }

  Program build() {
    builder_.set_num_draws(graph_.num_draws);
    for (const ValueId id : graph_.inputs)
      buffers_.whole(id) = builder_.add_external(buffers_.whole_meta(id));
    for (const Capture& capture : graph_.captures) {
      buffers_.whole(capture.initial) = builder_.add_external(buffers_.whole_meta(capture.initial));
    }
    std::vector<BufferId> results;
    for (const ValueId id : graph_.outputs)
      results.push_back(builder_.add_external(buffers_.whole_meta(id)));
    builder_.begin_part("before");
    add_all(NodeTime::kBefore);
    for (size_t i = 0; i < order_.size(); ++i) {
      if (takes_part(order_[i].stage, rank_)) add_action(order_[i], i);
    }
    builder_.begin_part("after");
    for (size_t edge = 0; edge < stages_.edges.size(); ++edge) {
      for (int64_t m = 0; m < plan_.num_micro_batches; ++m)
        receive(edge, m);
    }
    builder_.wait_for_sends();
    for (int64_t m = 0; m < plan_.num_micro_batches; ++m)
      add_nodes_of({}, m);
    for (int64_t m = 0; m < plan_.num_micro_batches; ++m)
      add_in_turn(m);
    add_all(NodeTime::kAfter);
    write_results(results);
    return builder_.finish();
  }

 private:
  bool takes_part(int64_t stage, int64_t rank) const {
    const std::set<int64_t>& ranks = stages_.ranks[static_cast<size_t>(stage)];
    return ranks.empty() || ranks.contains(rank);
  }

  // ---- what is used when

  // Where in the program a node runs, for comparing.
  size_t time_of(size_t node) const {
    return static_cast<size_t>(plan_.node_time[node]) * graph_.nodes.size() + node;
  }

  void find_uses() {
    last_use_.assign(graph_.values.size(), 0);
    is_summed_.assign(graph_.values.size(), false);
    is_used_in_parts_.assign(graph_.values.size(), false);
    const auto use_whole = [&](ValueId id, size_t time) {
      size_t& last = last_use_[static_cast<size_t>(id)];
      last = std::max(last, time);
      is_summed_[static_cast<size_t>(id)] = plan_.sbp_of(id).is_partial();
    };
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      for (const ValueId id : graph_.nodes[i].inputs) {
        if (id == kNoValue) continue;
        if (plan_.node_time[i] == NodeTime::kEach || plan_.is_per_micro_batch_of(id)) {
          is_used_in_parts_[static_cast<size_t>(id)] = true;
          last_use_[static_cast<size_t>(id)] =
              std::max(last_use_[static_cast<size_t>(id)], time_of(i));
        } else {
          use_whole(id, time_of(i));
        }
      }
    }
    for (const ValueId id : graph_.outputs)
      use_whole(id, kNever);
    for (const Capture& capture : graph_.captures)
      use_whole(capture.final_value, 0);
    // What may be a view is read wherever its tensor is.
    for (size_t i = graph_.nodes.size(); i-- > 0;) {
      const Node& node = graph_.nodes[i];
      if (node.op->view == nullptr) continue;
      size_t& of_input = last_use_[static_cast<size_t>(node.inputs[0])];
      of_input = std::max(of_input, last_use_[static_cast<size_t>(node.outputs[0])]);
    }
  }

  // ---- before and after the micro-batches

  void add_all(NodeTime time) {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (plan_.node_time[i] == time) add_once(i);
    }
  }

  // Of the node that makes a value, or of nobody.
  void set_guard(const Node* node) {
    builder_.set_guard(
        node == nullptr || node->guard < 0
            ? kNoBuffer
            : buffers_.whole_input(graph_.outputs[static_cast<size_t>(node->guard)]));
  }

  void add_once(size_t index) {
    const Node& node = graph_.nodes[index];
    set_guard(&node);
    std::vector<BufferId> inputs;
    for (size_t j = 0; j < node.inputs.size(); ++j) {
      const ValueId id = node.inputs[j];
      inputs.push_back(buffers_.whole_input(id));
      // What is written in place must not be read later.
      const bool is_written = node.op->mutates != 0 && (node.op->mutates >> j & 1) != 0;
      if (!is_written || last_use_[static_cast<size_t>(id)] == time_of(index)) continue;
      const BufferId copy = builder_.add_buffer(buffers_.whole_meta(id));
      if (buffers_.is_held(id)) builder_.add_copy(inputs.back(), copy);
      inputs.back() = copy;
    }
    std::vector<MetaPtr> metas;
    for (const ValueId id : node.outputs)
      metas.push_back(buffers_.whole_meta(id));
    const std::vector<BufferId> outputs = builder_.add_node(node, inputs, metas);
    for (size_t i = 0; i < outputs.size(); ++i)
      buffers_.whole(node.outputs[i]) = outputs[i];
    set_guard(nullptr);
  }

  void write_results(const std::vector<BufferId>& results) {
    for (size_t i = 0; i < results.size(); ++i) {
      const ValueId id = graph_.outputs[i];
      if (!buffers_.is_held(id)) continue;
      if (plan_.sbp_of(id).is_split() && buffers_.whole(id) == kNoBuffer) {
        buffers_.collect(id, results[i]);
      } else {
        builder_.add_copy(buffers_.whole_input(id), results[i]);
      }
    }
    for (const Capture& capture : graph_.captures) {
      if (!buffers_.is_held(capture.initial)) continue;
      const BufferId final_value = buffers_.whole_input(capture.final_value);
      if (final_value != buffers_.whole(capture.initial)) {
        set_guard(uses_.maker_node(capture.final_value));
        builder_.add_copy(final_value, buffers_.whole(capture.initial));
      }
    }
    set_guard(nullptr);
  }

  // ---- actions

  void add_action(const Action& action, size_t position) {
    const Slot slot{action.stage, action.kind};
    builder_.begin_part(to_string(action));
    for (size_t edge = 0; edge < stages_.edges.size(); ++edge) {
      if (stages_.edges[edge].to == slot) receive(edge, action.micro_batch);
    }
    add_nodes_of(slot, action.micro_batch);
    end_sends(position);
  }

  void add_nodes_of(const Slot& slot, int64_t m) {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (plan_.node_time[i] != NodeTime::kEach || !(stages_.slots[i] == slot)) continue;
      if (stages_.edge_of[i] < 0) {
        add_each(i, m);
      } else {
        send(static_cast<size_t>(stages_.edge_of[i]), m);
      }
    }
  }

  void add_each(size_t index, int64_t m) {
    const Node& node = graph_.nodes[index];
    const bool has_count = takes_own_sums(node) && plan_.sbp_of(node.inputs[0]).is_partial() &&
                           plan_.is_per_micro_batch_of(node.outputs[0]);
    if (has_count) {
      add_each(in_micro_batch(node, plan_.cut, m), index, m);
    } else {
      add_each(node, index, m);
    }
  }

  void add_each(const Node& node, size_t index, int64_t m) {
    const bool is_here = std::any_of(node.outputs.begin(), node.outputs.end(),
                                     [&](ValueId id) { return buffers_.is_held(id); }) ||
                         (node.op == &boxing::kRedistribute && buffers_.is_held(node.inputs[0]));
    if (!is_here) return;
    if (node.op->mutates != 0) {
      throw Unsupported(str("[micro-batch] ", node.op->name, " at ", node.file, ":", node.line,
                            " writes in place what differs between micro-batches; use its form "
                            "without underscore"));
    }
    std::vector<BufferId> inputs;
    for (size_t j = 0; j < node.inputs.size(); ++j)
      inputs.push_back(input_of(node.inputs[j], plan_.input_sbp[index][j], m));
    std::vector<BufferId> outputs;
    if (node.draw >= 0 && plan_.sbp_of(node.outputs[0]).is_split()) {
      outputs = add_draws(builder_, buffers_, node, plan_.input_sbp[index], inputs, m);
    } else {
      std::vector<MetaPtr> metas;
      for (const ValueId id : node.outputs)
        metas.push_back(buffers_.part_meta(id, m));
      outputs = builder_.add_node(node, inputs, metas);
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      const ValueId id = node.outputs[i];
      buffers_.part(id, m) = outputs[i];
      if (is_summed_[static_cast<size_t>(id)] && buffers_.is_held(id)) {
        buffers_.add_to_sum(id, outputs[i], !is_used_in_parts_[static_cast<size_t>(id)]);
      }
    }
  }

  // What layers keep of batches: the tensors that one micro-batch has written are read by the next.
  void add_in_turn(int64_t m) {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (plan_.node_time[i] != NodeTime::kSequential) continue;
      const Node& whole = graph_.nodes[i];
      const bool is_of_part =
          std::any_of(whole.inputs.begin(), whole.inputs.end(),
                      [&](ValueId id) { return plan_.is_per_micro_batch_of(id); });
      const Node node = is_of_part ? in_micro_batch(whole, plan_.cut, m) : whole;
      std::vector<BufferId> inputs;
      std::vector<MetaPtr> metas;
      std::vector<ValueId> written;
      for (size_t j = 0; j < node.inputs.size(); ++j) {
        const ValueId id = node.inputs[j];
        if ((node.op->mutates >> j & 1) == 0) {
          inputs.push_back(input_of(id, sbp::broadcast, m));
          continue;
        }
        inputs.push_back(state_of(id, last_use_[static_cast<size_t>(id)] != time_of(i)));
        written.push_back(id);
      }
      for (const ValueId id : node.outputs)
        metas.push_back(buffers_.whole_meta(id));
      const std::vector<BufferId> outputs = builder_.add_node(node, inputs, metas);
      for (size_t j = 0; j < outputs.size(); ++j) {
        buffers_.whole(node.outputs[j]) = outputs[j];
        const auto from = state_root_.find(written[j]);
        const ValueId root = from == state_root_.end() ? written[j] : from->second;
        state_root_[node.outputs[j]] = root;
        state_[root] = outputs[j];
      }
    }
  }

  // Where a written tensor stands now; a copy at first where it is still read as it was.
  BufferId state_of(ValueId id, bool is_read_later) {
    const auto from = state_root_.find(id);
    const ValueId root = from == state_root_.end() ? id : from->second;
    const auto known = state_.find(root);
    if (known != state_.end()) return known->second;
    const BufferId buffer = buffers_.whole_input(id);
    if (!is_read_later) return buffer;
    const BufferId copy = builder_.add_buffer(buffers_.whole_meta(id));
    if (buffers_.is_held(id)) builder_.add_copy(buffer, copy);
    return copy;
  }

  BufferId input_of(ValueId id, const Sbp& sbp, int64_t m) {
    if (id == kNoValue || buffers_.is_held(id)) return buffers_.part_input(id, sbp, m);
    if (buffers_.part(id, m) == kNoBuffer) {
      buffers_.part(id, m) = builder_.add_buffer(buffers_.part_meta(id, m));
    }
    return buffers_.part(id, m);
  }

  // ---- edges between stages

  // What the sender's ranks have when partial values are added up.
  Value sent_value(const Edge& edge, int64_t m) const {
    Value value = buffers_.part_value(graph_.nodes[edge.node].inputs[0], m);
    value.nd_sbp = boxing::without_partial(value.nd_sbp);
    return value;
  }

  // What the receiver's ranks have until a partial value is made of it.
  Value arrived_value(const Edge& edge, int64_t m) const {
    Value value = buffers_.part_value(graph_.nodes[edge.node].outputs[0], m);
    value.nd_sbp = boxing::without_partial(value.nd_sbp);
    return value;
  }

  std::vector<Message> messages_of(size_t edge, int64_t m) const {
    const Edge& it = stages_.edges[edge];
    return messages_between(sent_value(it, m), arrived_value(it, m));
  }

  int64_t tag(size_t edge, int64_t m) const {
    return static_cast<int64_t>(edge) * plan_.num_micro_batches + m;
  }

  // Messages from one rank are received in the order in which it sends them.
  void find_incoming() {
    for (const Action& action : order_) {
      for (size_t e = 0; e < stages_.edges.size(); ++e) {
        const Edge& edge = stages_.edges[e];
        if (!(edge.from == Slot{action.stage, action.kind})) continue;
        for (const Message& message : messages_of(e, action.micro_batch)) {
          if (message.to != rank_ || message.from == rank_) continue;
          incoming_[message.from].push_back({e, action.micro_batch, message.box});
        }
      }
    }
  }

  void send(size_t edge, int64_t m) {
    const Edge& it = stages_.edges[edge];
    const Node& node = graph_.nodes[it.node];
    const ValueId source = node.inputs[0];
    if (!buffers_.is_held(source)) return;
    BufferId buffer = buffers_.part_input(source, plan_.sbp_of(source), m);
    const Value value = sent_value(it, m);
    if (!(value.nd_sbp == graph_.value(source).nd_sbp)) buffer = lay_out(node, buffer, value);
    for (const Message& message : messages_of(edge, m)) {
      if (message.from != rank_) continue;
      const BufferId box = buffers_.box(buffer, message.box);
      if (message.to == rank_) {
        place(edge, m, message.box, box);
        continue;
      }
      const size_t step =
          builder_.add_send(builder_.contiguous(box), message.to, tag(edge, m), node);
      const bool is_used = it.to.stage >= 0;
      sends_.push_back({step, is_used ? position_.at({it.to.stage, it.to.kind, m}) : kNever});
    }
  }

  // Redistributes a buffer to the layout of `value` among the ranks that have it: adds up partial
  // values, or makes them.
  BufferId lay_out(const Node& node, BufferId buffer, const Value& value) {
    const boxing::RedistributeAttrs attrs{.placement = value.placement, .nd_sbp = value.nd_sbp};
    Node own = node;
    own.attrs.resize(sizeof(attrs));
    std::memcpy(own.attrs.data(), &attrs, sizeof(attrs));
    return builder_.add_node(own, {buffer}, {value.meta_on(rank_)})[0];
  }

  // Puts a box, of this rank or a received one, in its place in the edge's value.
  void place(size_t edge, int64_t m, const Box& box, BufferId source) {
    BufferId& target = arrived(edge, m);
    const MetaPtr meta = arrived_value(stages_.edges[edge], m).meta_on(rank_);
    if (target == kNoBuffer && box.size == meta->local_shape) {
      target =
          builder_.add_view(source, with_strides(meta, builder_.buffer(source).meta->strides), 0);
      return;
    }
    if (target == kNoBuffer) target = builder_.add_buffer(meta);
    builder_.add_copy(source, buffers_.box(target, box));
  }

  BufferId& arrived(size_t edge, int64_t m) {
    const ValueId id = graph_.nodes[stages_.edges[edge].node].outputs[0];
    if (!graph_.value(id).nd_sbp.has_partial()) return buffers_.part(id, m);
    return arrived_.try_emplace({edge, m}, kNoBuffer).first->second;
  }

  void receive(size_t edge, int64_t m) {
    const Node& node = graph_.nodes[stages_.edges[edge].node];
    const ValueId id = node.outputs[0];
    const bool is_partial = graph_.value(id).nd_sbp.has_partial();
    if (!buffers_.is_held(id) || (is_partial && buffers_.part(id, m) != kNoBuffer)) return;
    for (const Message& message : messages_of(edge, m)) {
      if (message.to != rank_ || message.from == rank_) continue;
      const auto key = std::tuple(edge, m, message.from);
      while (!received_.contains(key))
        receive_next(message.from);
    }
    BufferId& here = arrived(edge, m);
    if (here == kNoBuffer) {  // nothing of it is here
      here = builder_.add_buffer(arrived_value(stages_.edges[edge], m).meta_on(rank_));
    }
    if (is_partial) buffers_.part(id, m) = lay_out(node, here, buffers_.part_value(id, m));
  }

  void receive_next(int64_t from) {
    std::deque<Incoming>& queue = incoming_[from];
    FLOW_ASSERT(!queue.empty(), "rank ", from, " sends less than rank ", rank_, " needs");
    const Incoming next = queue.front();
    queue.pop_front();
    const Node& node = graph_.nodes[stages_.edges[next.edge].node];
    const Value& value = graph_.value(node.outputs[0]);
    const BufferId buffer =
        builder_.add_buffer(local_meta(next.box.size, value.dtype, value.device));
    builder_.add_recv(buffer, from, tag(next.edge, next.micro_batch), node);
    place(next.edge, next.micro_batch, next.box, buffer);
    received_.insert({next.edge, next.micro_batch, from});
  }

  // Ends the sends that have been received by now if all workers are as fast as the simulation has
  // it. In no order of events is this a wait for something later.
  void end_sends(size_t position) {
    std::erase_if(sends_, [&](const Send& send) {
      if (send.received_at >= position) return false;
      builder_.wait_for_send(send.step);
      return true;
    });
  }

  struct Incoming {
    size_t edge;
    int64_t micro_batch;
    Box box;
  };

  struct Send {
    size_t step;
    size_t received_at;  // position in the order of actions
  };

  const Graph& graph_;
  const MicroBatchPlan& plan_;
  const StagePlan& stages_;
  int64_t rank_;
  ProgramBuilder builder_;
  PartBuffers buffers_;
  graph::GraphUses uses_;
  std::vector<Action> order_;  // of all workers
  std::map<Action, size_t> position_;
  std::vector<size_t> last_use_;                             // by value
  std::vector<bool> is_summed_;                              // by value: P in time and used whole
  std::vector<bool> is_used_in_parts_;                       // by value
  std::vector<Send> sends_;                                  // not waited for
  std::map<ValueId, ValueId> state_root_;                    // what was written first, by value
  std::map<ValueId, BufferId> state_;                        // by root: the buffer it is in
  std::map<int64_t, std::deque<Incoming>> incoming_;         // by sender
  std::set<std::tuple<size_t, int64_t, int64_t>> received_;  // edge, micro-batch, sender
  std::map<std::pair<size_t, int64_t>, BufferId> arrived_;   // of what becomes partial, by edge
};

}  // namespace

Program build_program(const Graph& graph, const MicroBatchPlan& plan, const Schedule& schedule,
                      int64_t rank, const KernelTable& kernels) {
  validate(schedule);
  const StagePlan stages = plan_stages(graph, plan, schedule.has_weights());
  if (schedule.num_stages != stages.num_stages ||
      schedule.num_micro_batches != plan.num_micro_batches) {
    throw InvalidArgument(str("[pipeline] the graph has ", stages.num_stages, " stages and ",
                              plan.num_micro_batches, " micro-batches, the schedule ",
                              schedule.num_stages, " and ", schedule.num_micro_batches,
                              "; make the schedule for those of the graph"));
  }
  return Builder(graph, plan, schedule, stages, rank, kernels).build();
}

}  // namespace flow::pipeline
