// What compiling makes of a traced step. It is immutable, covers all ranks, and is shared by the
// thread ranks of a process.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
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

// Runs the passes, makes the programs and certifies them. Throws what the passes and certify()
// throw.
CompiledArtifact compile_artifact(Graph traced, std::span<const Pass> passes);

// Returns the most bytes that a run takes from the allocator of `rank`: the arena, the outputs, and
// what kernels take in addition. It does not count buffers inside libraries: those of oneDNN for
// converting a layout back to a strided one, and those in which a matrix library packs its
// operands.
int64_t peak_bytes_of(const CompiledArtifact& step, int64_t rank);

// Returns inputs, captured tensors, nodes, stages, passes, memory, certificate, and the
// redistributions of `rank` with their lines.
std::string summary_of(const CompiledArtifact& step, int64_t rank);

// Stores compiled steps by name between runs; empty functions: they are not stored. Both functions
// may throw IoError; the step is then compiled again, or not stored.
struct PlanStore {
  std::function<std::optional<std::string>(const std::string& name)> read = nullptr;
  std::function<void(const std::string& name, const std::string& bytes)> write = nullptr;
};

// Makes the programs of a step that was read ready to run: the calling rank's, or those of all
// ranks. Throws BadFile if this run's kernels are not those that it was compiled with.
void load_programs(CompiledArtifact& step, bool for_all_ranks);

// Returns the step from the store or, if it is not there, compiles it. The first thread rank that
// asks for a step makes it. Others wait for it and share it for as long as one of them holds it.
std::shared_ptr<const CompiledArtifact> compile_once(Graph traced, std::span<const Pass> passes,
                                                     const PlanStore& store = {});

}  // namespace flow::graph
