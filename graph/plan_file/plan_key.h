// What a compiled step depends on: two runs whose keys are equal compile the same plan.
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
  // Names and values: the traced step (a hash), the program that runs (its build id, and those of
  // the libraries with flow and with ops of the step), the number of ranks, the passes and the
  // settings of each, the cost table, the instruction set.
  std::vector<std::pair<std::string, std::string>> facts;

  // A name made of all facts, which can be used as a file name.
  std::string name() const;
  // Describes the differences for people; empty if there are none.
  std::string difference_from(const PlanKey& other) const;
  // False if the linker gave no build id to one of them. Programs with other code may then have the
  // same key.
  bool tells_programs_apart() const;
  // Returns the value of a fact; empty if there is no such fact.
  std::string fact(std::string_view name) const;

  friend bool operator==(const PlanKey&, const PlanKey&) = default;
};

// Returns the same key in every process that traces the same step.
PlanKey plan_key_of(const Graph& traced, std::span<const Pass> passes);

}  // namespace flow::graph
