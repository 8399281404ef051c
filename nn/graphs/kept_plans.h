// The plans that a graph keeps.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graph/run/arena.h"
#include "nn/compiled_graph.h"

namespace flow::nn {

// Plans in the order of their last use, and the arena in which all of them run. Which ones are kept
// follows from the sequence of calls alone, so ranks that make the same calls keep the same plans.
class KeptPlans {
 public:
  using Test = std::function<bool(const CompiledGraph& plan)>;

  // Returns the plan that passes the test, which is then the last used one; null: there is none.
  CompiledGraph* use(const Test& is_wanted);

  // The last used plan; null: there is none.
  const CompiledGraph* last() const { return plans_.empty() ? nullptr : plans_.back().get(); }

  // Adds a plan as the last used one.
  CompiledGraph& add(std::unique_ptr<CompiledGraph> plan);

  // Frees the last used plan. Requires: there is one.
  void remove_last();

  void clear();

  const std::shared_ptr<graph::Arena>& arena() const { return arena_; }

  // Frees plans that were not used for the longest time, until at most `limit` are left.
  void keep_at_most(int64_t limit);

  // How many plans are kept, at most how many, and how many keep_at_most() has freed.
  std::string summary() const;

 private:
  // Frees the arena if the plans that are left need less.
  void trim_arena();

  std::shared_ptr<graph::Arena> arena_ = std::make_shared<graph::Arena>();
  std::vector<std::unique_ptr<CompiledGraph>> plans_;  // the last used one at the end
  int64_t limit_ = 0;
  int64_t num_dropped_ = 0;
};

}  // namespace flow::nn
