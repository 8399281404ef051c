#include "graph/passes/pass.h"

#include "core/error.h"
#include "graph/passes/common_subexpressions.h"
#include "graph/passes/copies.h"
#include "graph/passes/dead_nodes.h"
#include "graph/passes/fuse_activation_grad.h"
#include "graph/passes/fuse_batch_norm.h"
#include "graph/passes/fuse_elementwise.h"
#include "graph/passes/fuse_gelu_products.h"
#include "graph/passes/fuse_norm_casts.h"
#include "graph/passes/identities.h"
#include "graph/passes/join_bias_gradients.h"
#include "graph/passes/move_updates.h"
#include "graph/passes/overlap_redistributions.h"
#include "graph/passes/overwrite_inputs.h"
#include "graph/passes/pool_before_relu.h"
#include "graph/passes/recompute_activations.h"
#include "graph/passes/redistributions.h"
#include "graph/passes/save_slopes.h"
#include "graph/passes/settle_stages.h"

namespace flow::graph {

Pass graph_pass(const char* name, bool is_exact, int64_t (*run)(Graph& graph)) {
  return {name, is_exact, [run](UnloweredStep& step) { return run(step.graph); }};
}

std::vector<Pass> optimizing_passes(PassSet set) {
  std::vector<Pass> passes = {
      graph_pass("remove_identities", false, remove_identities),
      graph_pass("join_redistributions", false, join_redistributions),
      graph_pass("remove_gradient_copies", true, remove_gradient_copies),
      graph_pass("merge_common_subexpressions", true, merge_common_subexpressions),
      graph_pass("eliminate_dead_nodes", true, eliminate_dead_nodes),
      graph_pass("recompute_activations", true, recompute_activations),
      graph_pass("fuse_gelu_products", false, fuse_gelu_products),
      graph_pass("fuse_activation_grad", true, fuse_activation_grad),
      graph_pass("save_slopes", true, save_slopes),
      graph_pass("pool_before_relu", false, pool_before_relu),
      graph_pass("fuse_batch_norm", true, fuse_batch_norm),
      graph_pass("fuse_norm_casts", true, fuse_norm_casts),
      graph_pass("join_bias_gradients", false, join_bias_gradients),
      graph_pass("fuse_elementwise", true, fuse_elementwise),
      graph_pass("move_updates", true, move_updates),
      graph_pass("overwrite_inputs", true, overwrite_inputs),
  };
  for (Pass& pass : passes) {
    if (pass.name == "fuse_elementwise")
      pass.settings = str("from ", least_fused_elements(), " elements");
    if (pass.name == "recompute_activations")
      pass.settings = str("from ", least_recomputed_bytes(), " bytes");
  }
  if (set == PassSet::kExact)
    std::erase_if(passes, [](const Pass& pass) { return !pass.is_exact; });
  return passes;
}

std::vector<Pass> plain_passes(PassSet set) {
  std::vector<Pass> passes = optimizing_passes(set);
  passes.insert(passes.begin(), graph_pass("settle_stages", true, settle_stages));
  passes.push_back(overlap_pass({}));
  return passes;
}

std::vector<PassResult> run_passes(UnloweredStep& step, std::span<const Pass> passes,
                                   const PassObserver& observer) {
  std::vector<PassResult> results;
  for (const Pass& pass : passes) {
    FLOW_ASSERT(!step.order, pass.name, " follows a pass that has set the order of the graph");
    results.push_back({pass.name, pass.run(step)});
    verify(step.graph);
    FLOW_ASSERT(!step.order || (step.order->cut.value_sbp.size() == step.graph.values.size() &&
                                step.order->cut.node_time.size() == step.graph.nodes.size()),
                pass.name, " has made an order of another graph");
    if (observer) observer(results.back(), step.graph);
  }
  return results;
}

}  // namespace flow::graph
