// What a compiled step depends on: two runs whose origins are equal compile the same plan.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph/passes/pass_set.h"
#include "graph/program/lower.h"

namespace flow::graph {

struct PlanKey {
  // Name and value: the traced step (a hash), the program that runs (its build id), ranks, passes,
  // what programs follow, cost table, instruction set, settings.
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
PlanKey plan_key_of(const Graph& traced, PassSet passes, const Lowering& lowering);

}  // namespace flow::graph
