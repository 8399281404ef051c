// Passes: rewrites of a traced step before it becomes programs, as one list. nn composes the list
// of a graph (nn/graph.cpp) of the passes here and those in pipeline.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/ir/ir.h"
#include "graph/passes/pass_set.h"
#include "graph/program/order.h"

namespace flow::graph {

// A traced step on its way through the passes.
struct UnloweredStep {
  Graph graph;
  // The order in which the step runs; empty: plain_order() of the graph. A pass that sets it ends
  // the list, since it is the order of one graph.
  std::optional<Order> order = {};
};

struct Pass {
  std::string name;
  // True if the step gives the same results bit for bit afterwards.
  bool is_exact = true;
  // Rewrites the step; returns how many nodes it removed, added or changed.
  std::function<int64_t(UnloweredStep& step)> run;
  // What the pass does beyond its name, for the key of the plan.
  std::string settings = {};
};

struct PassResult {
  std::string name;
  int64_t changes = 0;
};

// A pass that rewrites the graph alone.
Pass graph_pass(const char* name, bool is_exact, int64_t (*run)(Graph& graph));

// The passes that optimize any graph, in the order in which they run.
std::vector<Pass> optimizing_passes(PassSet set = PassSet::kAll);

// All passes of a step of one stage and one micro-batch.
std::vector<Pass> plain_passes(PassSet set = PassSet::kAll);

// Is told of the graph after each pass.
using PassObserver = std::function<void(const PassResult& result, const Graph& graph)>;

// Runs the passes in their order; the step is verified after each.
std::vector<PassResult> run_passes(UnloweredStep& step, std::span<const Pass> passes,
                                   const PassObserver& observer = {});

}  // namespace flow::graph
