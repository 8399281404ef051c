// What compiling makes of a traced step. It is immutable, covers all ranks, and is shared by the
// thread ranks of a process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graph/passes/pass.h"
#include "graph/plan_file/plan_key.h"
#include "graph/program/certificate.h"
#include "graph/program/program.h"

namespace flow::graph {

struct CompiledArtifact {
  Graph graph;  // after the passes
  std::vector<PassResult> passes;
  Programs programs;  // by rank; only the calling rank's if all tensors are local
  Certificate certificate;
  PlanKey key;                    // empty if it is not known
  bool from_cache = false;        // the step was read from the plan store
  std::string cache_miss_reason;  // why what the plan store held was refused

  bool is_global() const { return programs.size() > 1; }

  const Program& program_of(int64_t rank) const {
    return *programs[is_global() ? static_cast<size_t>(rank) : 0];
  }
};

// Returns the most bytes that a run takes from the allocator of `rank`: the arena, the outputs, and
// what kernels take in addition. It does not count buffers inside libraries: those of oneDNN for
// converting a layout back to a strided one, and those in which a matrix library packs its
// operands.
int64_t peak_bytes_of(const CompiledArtifact& step, int64_t rank);

// Makes the programs of a step that was read ready to run: the calling rank's, or those of all
// ranks. Throws BadFile if this run's kernels are not those that it was compiled with.
void load_programs(CompiledArtifact& step, bool for_all_ranks);

}  // namespace flow::graph
