#include "graph/program/lower.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "boxing/comm/communicator.h"
#include "boxing/redistribute_op.h"
#include "core/context.h"
#include "core/env.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "graph/ir/place.h"
#include "graph/program/block_runs.h"
#include "graph/program/builder.h"
#include "graph/program/part_buffers.h"
#include "graph/program/positional_parts.h"
#include "graph/program/program_classes.h"
#include "graph/program/step_uses.h"

namespace flow::graph {

namespace {

class RankLowering {
 public:
  RankLowering(const Graph& graph, const Order& order, const StepUses& uses, int64_t rank,
               const KernelTable& kernels)
      : graph_(graph),
        order_(order),
        cut_(order.cut),
        uses_(uses),
        rank_(rank),
        builder_(rank, kernels),
        buffers_(graph, order, builder_, rank) {}

  Program run() {
    builder_.set_num_draws(graph_.num_draws);
    for (const ValueId id : graph_.inputs)
      buffers_.whole(id) = builder_.add_external(buffers_.whole_meta(id));
    for (const Capture& capture : graph_.captures) {
      buffers_.whole(capture.initial) = builder_.add_external(buffers_.whole_meta(capture.initial));
    }
    add_results();
    if (order_.is_plain()) {
      add_all(NodeTime::kBefore);
      write_results();
    } else {
      add_blocks();
    }
    return builder_.finish();
  }

 private:
  // ---- blocks

  void add_blocks() {
    const std::vector<int64_t> sizes = order_.cut.sizes();
    const BlockIndex before = builder_.begin_block();
    builder_.allow_background(false);  // everything here ends with the block
    add_all(NodeTime::kBefore);
    builder_.allow_background(true);
    BlockRuns runs(order_, rank_, buffers_, builder_);
    builder_.set_per_micro_batch(true);
    for (const int64_t m : sizes)
      add_actions_like(m, runs);
    buffers_.add_waits();
    builder_.set_per_micro_batch(false);

    builder_.begin_part("before");
    runs.add_once(before);
    runs.add_actions();
    const auto each = [&](const auto& add) {
      std::map<int64_t, BlockIndex> blocks;
      builder_.set_per_micro_batch(true);
      for (const int64_t m : sizes) {
        blocks[m] = builder_.begin_block();
        add(m);
      }
      builder_.set_per_micro_batch(false);
      runs.add_each(blocks);
    };
    for (size_t edge = 0; edge < order_.edges.size(); ++edge) {
      if (!is_received_in_action(edge)) each([&](int64_t m) { arrive(edge, m); });
    }
    each([&](int64_t m) { add_nodes(order_.nodes_after, m); });
    const BlockIndex states = builder_.begin_block();
    copy_states();
    runs.add_once(states);
    each([&](int64_t m) { add_sequential(m); });
    const BlockIndex after = builder_.begin_block();
    add_all(NodeTime::kAfter);
    write_results();
    runs.add_once(after);
    const auto is_made_in_parts = [&](const Capture& capture) {
      return is_collected(capture.final_value);
    };
    if (std::any_of(graph_.captures.begin(), graph_.captures.end(), is_made_in_parts))
      each([&](int64_t m) { write_captured_parts(m); });
  }

  bool is_received_in_action(size_t edge) const {
    const BlockId to = order_.edges[edge].to;
    return to >= 0 && order_.takes_part(to, rank_);
  }

  void arrive(size_t edge, int64_t m) {
    buffers_.arrive(edge, m);
    finish_part(graph_.nodes[order_.edges[edge].node].outputs[0], m);
  }

  // Adds the blocks of the micro-batches that are as long as m, in the order in which m needs them.
  void add_actions_like(int64_t m, BlockRuns& runs) {
    for (const BlockAction& action : order_.actions) {
      if (action.micro_batch != m || !order_.takes_part(action.block, rank_)) continue;
      const auto block = static_cast<size_t>(action.block);
      for (const size_t edge : order_.edges_to[block])
        buffers_.add_receives(edge, m);
      runs.set_block(action.block, m, builder_.begin_block());
      for (const size_t edge : order_.edges_to[block])
        arrive(edge, m);
      add_nodes(order_.nodes[block], m);
    }
    for (size_t edge = 0; edge < order_.edges.size(); ++edge) {
      if (!is_received_in_action(edge)) buffers_.add_receives(edge, m);
    }
  }

  // ---- nodes that run once

  void add_all(NodeTime time) {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (cut_.node_time[i] == time) add_once(i);
    }
  }

  // Guards the kernels that follow, so that they run only if the node would run; null: always.
  void set_guard(const Node* node) {
    builder_.set_guard(
        node == nullptr || node->guard < 0
            ? kNoBuffer
            : buffers_.whole_input(graph_.outputs[static_cast<size_t>(node->guard)]));
  }

  void add_once(size_t index) {
    const Node& node = graph_.nodes[index];
    std::vector<BufferId> inputs;
    for (size_t j = 0; j < node.inputs.size(); ++j) {
      const ValueId id = node.inputs[j];
      inputs.push_back(buffers_.whole_input(id));
      // A value that is read later must not be written in place. Ops that write in place have few
      // inputs.
      const bool is_written = node.op->mutates != 0 && (node.op->mutates >> j & 1) != 0;
      if (is_written && (uses_.is_read_after(id, index) || uses_.damages_base(id, index)))
        inputs.back() = copy_of(id, inputs.back());
    }
    set_guard(&node);  // copies are made in any case: they are what the node would write
    const bool is_last_read =
        node.overwrites >= 0 &&
        !uses_.is_read_after(node.inputs[static_cast<size_t>(node.overwrites)], index);
    builder_.set_overwritten(is_last_read ? node.overwrites : -1);
    const std::vector<BufferId> outputs = builder_.add_node(node, inputs, whole_metas(node));
    builder_.set_overwritten(-1);
    for (size_t i = 0; i < outputs.size(); ++i)
      buffers_.whole(node.outputs[i]) = outputs[i];
    set_guard(nullptr);
  }

  BufferId copy_of(ValueId id, BufferId buffer) {
    const BufferId copy = builder_.add_buffer(buffers_.whole_meta(id));
    if (buffers_.is_held(id)) builder_.add_copy(buffer, copy);
    return copy;
  }

  std::vector<MetaPtr> whole_metas(const Node& node) const {
    std::vector<MetaPtr> metas;
    for (const ValueId id : node.outputs)
      metas.push_back(buffers_.whole_meta(id));
    return metas;
  }

  // ---- nodes that run for each micro-batch

  void add_nodes(const std::vector<size_t>& nodes, int64_t m) {
    for (const size_t i : nodes) {
      if (order_.edge_of[i] < 0) {
        in_micro_batch(i, m, [&](const Node& node) { add_each(node, i, m); });
      } else {
        buffers_.send(static_cast<size_t>(order_.edge_of[i]), m);
      }
    }
  }

  // Calls `add` with the node as it is in micro-batch m.
  template <class Add>
  void in_micro_batch(size_t index, int64_t m, const Add& add) {
    const auto own = order_.attrs.find(index);
    if (own == order_.attrs.end()) return add(graph_.nodes[index]);
    Node node = graph_.nodes[index];
    node.attrs = own->second.at(m);
    add(node);
  }

  void add_each(const Node& node, size_t index, int64_t m) {
    const bool is_here = std::any_of(node.outputs.begin(), node.outputs.end(),
                                     [&](ValueId id) { return buffers_.is_held(id); }) ||
                         (node.op == &boxing::kRedistribute && buffers_.is_held(node.inputs[0]));
    if (!is_here) return;
    std::vector<BufferId> inputs;
    for (size_t j = 0; j < node.inputs.size(); ++j)
      inputs.push_back(input_of(node.inputs[j], cut_.input_sbp[index][j], m));
    copy_written_parts(node, index, m, inputs);
    std::vector<BufferId> outputs;
    if (cut_.is_positional[index]) {
      outputs = add_positional(builder_, buffers_, node, cut_.input_sbp[index], inputs, m);
    } else {
      std::vector<MetaPtr> metas;
      for (const ValueId id : node.outputs)
        metas.push_back(buffers_.part_meta(id, m));
      outputs = builder_.add_node(node, inputs, metas);
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      buffers_.part(node.outputs[i], m) = outputs[i];
      finish_part(node.outputs[i], m);
    }
  }

  // Adds the part to the sum or to the result that it belongs to.
  void finish_part(ValueId id, int64_t m) {
    if (uses_.is_summed(id) && buffers_.is_held(id)) {
      buffers_.add_to_sum(id, buffers_.part(id, m), !uses_.is_read_in_parts(id));
    }
    collect_result(id, m);
  }

  // A part may lie in the memory of the whole value or have views, so what writes in place gets a
  // copy of it.
  void copy_written_parts(const Node& node, size_t index, int64_t m,
                          std::vector<BufferId>& inputs) {
    if (node.op->mutates != 0 && cut_.is_positional[index]) {
      throw_at<Unsupported>(
          node, str("[micro-batch] ", node.op->name, " at ", node.file, ":", node.line,
                    " writes rows of a batch in place; use its form without underscore"));
    }
    size_t output = 0;
    for (uint32_t left = node.op->mutates; left != 0; left &= left - 1, ++output) {
      BufferId& input = inputs[static_cast<size_t>(std::countr_zero(left))];
      const ValueId written = node.outputs[output];
      const BufferId copy = builder_.add_buffer(buffers_.part_meta(written, m));
      if (buffers_.is_held(written)) builder_.add_copy(input, copy);
      input = copy;
    }
  }

  BufferId input_of(ValueId id, const Sbp& sbp, int64_t m) {
    if (id == kNoValue || buffers_.is_held(id)) return buffers_.part_input(id, sbp, m);
    if (buffers_.part(id, m) == kNoBuffer) {
      buffers_.part(id, m) = builder_.add_buffer(buffers_.part_meta(id, m));
    }
    return buffers_.part(id, m);
  }

  // ---- nodes that write state which passes from one micro-batch to the next, such as running
  // statistics

  void add_sequential(int64_t m) {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (cut_.node_time[i] != NodeTime::kSequential) continue;
      in_micro_batch(i, m, [&](const Node& node) { add_sequential(node, m); });
    }
  }

  // Copies the state that is written although something reads it later.
  void copy_states() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (cut_.node_time[i] != NodeTime::kSequential) continue;
      const Node& node = graph_.nodes[i];
      size_t output = 0;
      for (uint32_t left = node.op->mutates; left != 0; left &= left - 1, ++output) {
        const ValueId id = node.inputs[static_cast<size_t>(std::countr_zero(left))];
        const ValueId root = state_root(id);
        if (!state_.contains(root)) {
          check_is_outside(node, root);
          state_[root] = state_of(id, uses_.is_read_after(id, i));
        }
        state_root_[node.outputs[output]] = root;
      }
    }
  }

  // What a step makes begins again in each micro-batch, and the nodes after it would see the last.
  void check_is_outside(const Node& node, ValueId state) const {
    if (uses_.maker_node(state) == nullptr) return;
    throw_at<Unsupported>(
        node, str("[micro-batch] ", node.op->name, " at ", node.file, ":", node.line,
                  " writes statistics that the step makes itself, as batch norm without a momentum "
                  "does; give it a momentum, or run the batch as a whole"));
  }

  void add_sequential(const Node& node, int64_t m) {
    std::vector<BufferId> inputs;
    for (size_t j = 0; j < node.inputs.size(); ++j) {
      const ValueId id = node.inputs[j];
      if ((node.op->mutates >> j & 1) == 0) {
        inputs.push_back(input_of(id, sbp::broadcast, m));
        continue;
      }
      inputs.push_back(state_.at(state_root(id)));
    }
    const std::vector<BufferId> outputs = builder_.add_node(node, inputs, whole_metas(node));
    for (size_t j = 0; j < outputs.size(); ++j)
      buffers_.whole(node.outputs[j]) = outputs[j];
  }

  ValueId state_root(ValueId id) const {
    const auto known = state_root_.find(id);
    return known == state_root_.end() ? id : known->second;
  }

  // The buffer in which a written tensor's state changes: the tensor itself, or a copy if something
  // reads its earlier state afterwards.
  BufferId state_of(ValueId id, bool is_read_later) {
    const BufferId buffer = buffers_.whole_input(id);
    return is_read_later ? copy_of(id, buffer) : buffer;
  }

  // ---- results

  void add_results() {
    for (const ValueId id : graph_.outputs)
      results_.push_back(builder_.add_external(buffers_.whole_meta(id)));
  }

  // True if each micro-batch makes a part of the result.
  bool is_collected(ValueId id) const {
    const Node* maker = uses_.maker_node(id);
    if (maker == nullptr || !buffers_.is_held(id) || !cut_.sbp_of(id).is_split()) return false;
    return cut_.node_time[static_cast<size_t>(maker - graph_.nodes.data())] == NodeTime::kEach;
  }

  // Copies the part of a value that is a result to its place.
  void collect_result(ValueId id, int64_t m) {
    for (size_t i = 0; i < results_.size(); ++i) {
      if (graph_.outputs[i] == id && is_collected(id)) buffers_.collect(id, results_[i], m);
    }
  }

  void write_results() {
    for (size_t i = 0; i < results_.size(); ++i) {
      const ValueId id = graph_.outputs[i];
      if (buffers_.is_held(id) && !is_collected(id))
        builder_.add_copy(buffers_.whole_input(id), results_[i]);
    }
    // Results are copied first, because they may show a captured tensor's value before it is
    // written.
    for (const Capture& capture : graph_.captures) {
      if (!buffers_.is_held(capture.initial) || is_collected(capture.final_value)) continue;
      const BufferId final_value = buffers_.whole_input(capture.final_value);
      if (final_value == buffers_.whole(capture.initial)) continue;
      set_guard(uses_.maker_node(capture.final_value));
      builder_.add_copy(final_value, buffers_.whole(capture.initial));
    }
    set_guard(nullptr);
  }

  // Writes the rows of captured tensors that a micro-batch has made. All of them are written at the
  // end, because other micro-batches read the tensors as they were.
  void write_captured_parts(int64_t m) {
    for (const Capture& capture : graph_.captures) {
      if (is_collected(capture.final_value))
        buffers_.collect(capture.final_value, buffers_.whole(capture.initial), m);
    }
  }

  const Graph& graph_;
  const Order& order_;
  const MicroBatchCut& cut_;
  const StepUses& uses_;
  int64_t rank_;
  ProgramBuilder builder_;
  PartBuffers buffers_;
  std::map<ValueId, ValueId> state_root_;  // by value: the first written version of its tensor
  std::map<ValueId, BufferId> state_;      // by root: the buffer with the current version
  std::vector<BufferId> results_;          // by output of the graph
};

// Makes the programs of one step on several ranks.
class StepLowering {
 public:
  StepLowering(const Graph& graph, const Order& order)
      : graph_(graph), order_(order), uses_(graph, order) {}

  // Chooses kernels as that rank chooses them.
  Program program_of(int64_t rank) const {
    if (rank == env::rank()) return lowered(rank);
    RankContext context(
        {.rank = rank, .world_size = env::world_size(), .local_rank = 0, .node_rank = 0}, 1);
    const RankScope scope(boxing::for_planning(context));
    return lowered(rank);
  }

 private:
  Program lowered(int64_t rank) const {
    return RankLowering(graph_, order_, uses_, rank, kernel_table()).run();
  }

  const Graph& graph_;
  const Order& order_;
  StepUses uses_;
};

// The shapes of a rank's parts. The program of a plain step depends on nothing else besides the
// graph.
class PartShapes {
 public:
  explicit PartShapes(const Graph& graph) {
    for (const Value& value : graph.values) {
      if (value.placement.defined()) distinct_.insert(value.meta_on(value.placement.ranks()[0]));
    }
  }

  std::vector<Shape> on(int64_t rank) const {
    std::vector<Shape> shapes;
    for (const MetaPtr meta : distinct_) {
      const MetaPtr own =
          global_meta(meta->shape, meta->dtype, meta->placement, meta->nd_sbp, rank);
      shapes.push_back(own->is_held ? own->local_shape : Shape{-1});
    }
    return shapes;
  }

 private:
  std::set<MetaPtr> distinct_;
};

}  // namespace

Program lower(const Graph& graph, const Order& order, int64_t rank, const KernelTable& kernels) {
  const StepUses uses(graph, order);
  return RankLowering(graph, order, uses, rank, kernels).run();
}

Programs lower_all(const Graph& graph, const Order& order) {
  const StepLowering step(graph, order);
  Programs programs;
  std::vector<std::vector<Shape>> shapes;
  const bool is_by_shapes = order.is_plain();
  const bool is_checked = env_flag("FLOW_CHECK");
  const PartShapes parts(graph);
  for (int64_t rank = 0; rank < env::world_size(); ++rank) {
    size_t like = shapes.size();
    shapes.push_back(parts.on(rank));
    if (is_by_shapes) {
      like = static_cast<size_t>(std::find(shapes.begin(), shapes.end(), shapes.back()) -
                                 shapes.begin());
      if (like < programs.size() && !is_checked) {
        programs.push_back(programs[like]);
        continue;
      }
    }
    auto own = std::make_shared<const Program>(step.program_of(rank));
    if (is_by_shapes && like < programs.size()) {
      FLOW_ASSERT(same_program_up_to_rank(*programs[like], *own), "the programs of ranks ", like,
                  " and ", rank, " differ although their parts have the same shapes");
    }
    const auto known = std::find_if(programs.begin(), programs.end(), [&](const auto& other) {
      return same_program_up_to_rank(*other, *own);
    });
    programs.push_back(known == programs.end() ? std::move(own) : *known);
  }
  return programs;
}

Programs lower_here(const Graph& graph, const Order& order) {
  return {std::make_shared<const Program>(StepLowering(graph, order).program_of(env::rank()))};
}

}  // namespace flow::graph
