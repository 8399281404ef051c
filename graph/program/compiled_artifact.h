// What compiling makes of a traced step: immutable, for all ranks, shared by the thread ranks of a
// process.
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
  Programs programs;  // by rank; only the calling rank's where all tensors are local
  Certificate certificate;
  PlanKey key;                    // where it is known
  bool from_cache = false;        // from where steps are kept
  std::string cache_miss_reason;  // what was kept for it but refused

  bool is_global() const { return programs.size() > 1; }

  const Program& program_of(int64_t rank) const {
    return *programs[is_global() ? static_cast<size_t>(rank) : 0];
  }
};

// Runs the passes, makes the programs and certifies them. Throws what the passes and certify()
// throw.
CompiledArtifact compile_artifact(Graph traced, std::span<const Pass> passes);

// The most that a run takes from the allocator of `rank`: the arena, outputs, and what kernels take
// beside. Buffers inside libraries are not flow's: oneDNN's where a layout is converted back to a
// strided one, and those in which a library of matrix products packs its operands.
int64_t peak_bytes_of(const CompiledArtifact& step, int64_t rank);

// Inputs, captured tensors, nodes, stages, passes, memory, certificate, and the redistributions of
// `rank` with their lines.
std::string summary_of(const CompiledArtifact& step, int64_t rank);

// Where compiled steps are kept between runs, by name; empty functions: nowhere. Both may throw
// IoError, which costs no more than compiling anew.
struct PlanStore {
  std::function<std::optional<std::string>(const std::string& name)> read = nullptr;
  std::function<void(const std::string& name, const std::string& bytes)> write = nullptr;
};

// Makes the programs of a step that was read runnable: the calling rank's, or those of all ranks.
// Throws BadFile where this run's kernels are not those it was compiled with.
void load_programs(CompiledArtifact& step, bool for_all_ranks);

// The step as it is kept, else compiled. The same step is made once by the first thread rank that
// asks for it; others wait for it and share it, as long as one of them has it.
std::shared_ptr<const CompiledArtifact> compile_once(Graph traced, std::span<const Pass> passes,
                                                     const PlanStore& store = {});

}  // namespace flow::graph
