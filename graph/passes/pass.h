// Passes: rewrites of a traced step before it becomes a program, as one list.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/ir/ir.h"
#include "graph/passes/pass_set.h"

namespace flow::graph {

struct Pass {
  const char* name;
  // The step gives the same results bit for bit.
  bool is_exact;
  // Rewrites the graph; returns how many nodes it took away or changed.
  int64_t (*run)(Graph& graph);
};

struct PassResult {
  const char* name;
  int64_t changes;
};

// All passes in the order in which they run.
std::span<const Pass> passes();

// Runs those of a set; the graph is verified after each.
std::vector<PassResult> run_passes(Graph& graph, PassSet set);

// ---- the passes, a file each

// Replaces what an earlier node of the same phase and stage has computed from the same inputs:
// constants, views, casts, redistributions. Draws of random numbers and writes in place stay.
int64_t merge_common_subexpressions(Graph& graph);

// Takes away the copies that backward makes of gradients which might be shared.
int64_t remove_gradient_copies(Graph& graph);

// Takes away pairs that undo each other: a permutation and its inverse, a cast to a wider dtype and
// back, a reshape of a reshape.
int64_t remove_identities(Graph& graph);

// Joins redistributions whose result is only redistributed again, where the direct way is
// predicted to be as fast; takes away those that lead back to where a value is already.
int64_t join_redistributions(Graph& graph);

}  // namespace flow::graph
