#include "graph/passes/pass.h"

#include <array>

namespace flow::graph {

std::span<const Pass> passes() {
  static constexpr std::array kPasses = {
      Pass{"remove_identities", false, remove_identities},
      Pass{"join_redistributions", false, join_redistributions},
      Pass{"remove_gradient_copies", true, remove_gradient_copies},
      Pass{"merge_common_subexpressions", true, merge_common_subexpressions},
      Pass{"eliminate_dead_nodes", true, eliminate_dead_nodes},
  };
  return kPasses;
}

std::vector<PassResult> run_passes(Graph& graph, PassSet set) {
  std::vector<PassResult> results;
  for (const Pass& pass : passes()) {
    if (set == PassSet::kExact && !pass.is_exact) continue;
    results.push_back({pass.name, pass.run(graph)});
    verify(graph);
  }
  return results;
}

}  // namespace flow::graph
