#include "nn/step_passes.h"

#include "core/error.h"

namespace flow::nn {

namespace {

// ZeRO: parameters are shards of the ranks, gathered where the step uses them.
graph::Pass zero_pass(const StepPasses& step) {
  const auto run = [shards = step.shards, once = step.gathers_once,
                    batching = step.batching](graph::UnloweredStep& unlowered) {
    graph::Graph& graph = unlowered.graph;
    return graph::shard_captures(graph, shards,
                                 {.once = once, .by_phase = batching.is_needed(graph)});
  };
  std::string settings = step.gathers_once ? "once" : "at each use";
  for (const graph::ShardedCapture& shard : step.shards)
    settings += str(", ", shard.capture, " as ", shard.sbp);
  return {"shard_captures", true, run, settings};
}

}  // namespace

std::vector<graph::Pass> list_passes(const StepPasses& step) {
  std::vector<graph::Pass> passes = graph::optimizing_passes(step.set);
  const auto first =
      passes.insert(passes.begin(), graph::graph_pass("settle_stages", true, graph::settle_stages));
  if (!step.shards.empty()) passes.insert(first + 1, zero_pass(step));
  passes.push_back(pipeline::micro_batching_pass(step.batching));
  return passes;
}

}  // namespace flow::nn
