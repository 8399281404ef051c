#include "graph/program/lower_all.h"

#include <algorithm>
#include <set>

#include "core/context.h"
#include "core/env.h"
#include "core/error.h"
#include "eager/runtime.h"

namespace flow::graph {

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
