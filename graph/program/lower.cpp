#include "graph/program/lower.h"

#include <algorithm>
#include <set>

#include "core/context.h"
#include "core/env.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "graph/program/builder.h"

namespace flow::graph {

Program lower(const Graph& graph, int64_t rank, const KernelTable& kernels) {
  ProgramBuilder builder(rank, kernels);
  builder.set_num_draws(graph.num_draws);
  std::vector<BufferId> buffers(graph.values.size(), kNoBuffer);
  const auto meta = [&](ValueId id) { return graph.value(id).meta_on(rank); };
  const auto at = [&](ValueId id) -> BufferId& { return buffers[static_cast<size_t>(id)]; };

  for (const ValueId input : graph.inputs)
    at(input) = builder.add_external(meta(input));
  for (const Capture& capture : graph.captures) {
    at(capture.initial) = builder.add_external(meta(capture.initial));
  }
  // The last node that reads each value: an op that writes in place may only take over a value
  // that nobody reads later.
  std::vector<size_t> last_use(graph.values.size(), 0);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const ValueId input : graph.nodes[i].inputs) {
      if (input != kNoValue) last_use[static_cast<size_t>(input)] = i;
    }
  }
  for (const ValueId output : graph.outputs)
    last_use[static_cast<size_t>(output)] = graph.nodes.size();

  // What may be a view is read wherever its tensor is.
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    if (node.op->view == nullptr) continue;
    size_t& of_input = last_use[static_cast<size_t>(node.inputs[0])];
    of_input = std::max(of_input, last_use[static_cast<size_t>(node.outputs[0])]);
  }

  const auto guard_of = [&](const Node& node) {
    return node.guard < 0 ? kNoBuffer : at(graph.outputs[static_cast<size_t>(node.guard)]);
  };
  std::vector<BufferId> guards(graph.values.size(), kNoBuffer);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    builder.set_guard(guard_of(node));
    std::vector<BufferId> inputs;
    for (size_t j = 0; j < node.inputs.size(); ++j) {
      const ValueId input = node.inputs[j];
      inputs.push_back(input == kNoValue ? kNoBuffer : at(input));
      // Ops that write in place have few inputs.
      const bool is_written = node.op->mutates != 0 && (node.op->mutates >> j & 1) != 0;
      if (!is_written || last_use[static_cast<size_t>(input)] == i) continue;
      const MetaPtr plain = meta(input);
      const BufferId copy = builder.add_buffer(plain);
      if (plain->is_held) builder.add_copy(inputs.back(), copy);
      inputs.back() = copy;
    }
    std::vector<MetaPtr> metas;
    for (const ValueId output : node.outputs)
      metas.push_back(meta(output));
    const std::vector<BufferId> outputs = builder.add_node(node, inputs, metas);
    for (size_t j = 0; j < outputs.size(); ++j) {
      at(node.outputs[j]) = outputs[j];
      guards[static_cast<size_t>(node.outputs[j])] = guard_of(node);
    }
  }
  builder.set_guard(kNoBuffer);
  for (const ValueId output : graph.outputs) {
    const BufferId result = builder.add_external(meta(output));
    if (meta(output)->is_held) builder.add_copy(at(output), result);
  }
  // Results are copied first: they may show a captured tensor's value before it is written.
  for (const Capture& capture : graph.captures) {
    if (at(capture.final_value) != at(capture.initial) && meta(capture.initial)->is_held) {
      builder.set_guard(guards[static_cast<size_t>(capture.final_value)]);
      builder.add_copy(at(capture.final_value), at(capture.initial));
    }
  }
  return builder.finish();
}

namespace {

// Kernels are chosen as that rank would choose them.
Program make_for(const Graph& graph, const Lowering& lowering, int64_t rank) {
  if (rank == env::rank()) {
    return lowering.make ? lowering.make(graph, rank) : lower(graph, rank, kernel_table());
  }
  RankContext context(
      {.rank = rank, .world_size = env::world_size(), .local_rank = 0, .node_rank = 0}, 1);
  const RankScope scope(context);
  return lowering.make ? lowering.make(graph, rank) : lower(graph, rank, kernel_table());
}

// What graph::lower goes by on a rank: the shapes of its parts.
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

Programs lower_all(const Graph& graph, const Lowering& lowering) {
  Programs programs;
  std::vector<std::vector<Shape>> shapes;
  const bool is_by_shapes = lowering.make == nullptr;
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
    auto own = std::make_shared<const Program>(make_for(graph, lowering, rank));
    if (is_by_shapes && like < programs.size()) {
      FLOW_ASSERT(same_program_up_to_rank(*programs[like], *own), "the programs of ranks ", like,
                  " and ", rank, " differ though their parts have the same shapes");
    }
    const auto known = std::find_if(programs.begin(), programs.end(), [&](const auto& other) {
      return same_program_up_to_rank(*other, *own);
    });
    programs.push_back(known == programs.end() ? std::move(own) : *known);
  }
  return programs;
}

Programs lower_here(const Graph& graph, const Lowering& lowering) {
  return {std::make_shared<const Program>(make_for(graph, lowering, env::rank()))};
}

}  // namespace flow::graph
