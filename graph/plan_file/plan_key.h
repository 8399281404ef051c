// What a compiled step depends on: two runs whose origins are equal compile the same plan.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/ir/ir.h"
#include "graph/passes/pass.h"

namespace flow::graph {

struct PlanKey {
  // Name and value: the traced step (a hash), the program that runs (its build id), ranks, passes
  // and the settings of each, cost table, instruction set.
  std::vector<std::pair<std::string, std::string>> facts;

  // Of all facts; a file name.
  std::string name() const;
  // What differs, for people; empty where nothing does.
  std::string difference_from(const PlanKey& other) const;
  // Empty where there is no such fact.
  std::string fact(std::string_view name) const;

  friend bool operator==(const PlanKey&, const PlanKey&) = default;
};

// The same in every process that traces the same step.
PlanKey plan_key_of(const Graph& traced, std::span<const Pass> passes);

}  // namespace flow::graph
