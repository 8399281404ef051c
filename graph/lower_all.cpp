#include "graph/lower_all.h"

#include "core/context.h"

namespace flow::graph {

std::vector<Program> lower_all(const Graph& graph, const Lowering& lowering) {
  const int64_t own = env::rank(), world_size = env::world_size();
  std::vector<Program> programs;
  for (int64_t rank = 0; rank < world_size; ++rank) {
    if (rank == own) {
      programs.push_back(lowering(graph, rank));
      continue;
    }
    // Kernels are chosen as that rank would choose them.
    RankContext context({.rank = rank, .world_size = world_size, .local_rank = 0, .node_rank = 0},
                        1);
    const RankScope scope(context);
    programs.push_back(lowering(graph, rank));
  }
  return programs;
}

}  // namespace flow::graph
