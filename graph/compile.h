// Compiles traced steps: runs the passes, makes the programs of all ranks, and certifies them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "graph/passes/pass.h"
#include "graph/program/compiled_artifact.h"

namespace flow::graph {

// Runs the passes, makes the programs and certifies them. Throws what the passes and certify()
// throw.
CompiledArtifact compile_artifact(Graph traced, std::span<const Pass> passes);

// Stores compiled steps by name between runs; empty functions: they are not stored. Both functions
// may throw IoError; the step is then compiled again, or not stored.
struct PlanStore {
  std::function<std::optional<std::string>(const std::string& name)> read = nullptr;
  std::function<void(const std::string& name, const std::string& bytes)> write = nullptr;
};

// Returns the step from the store or, if it is not there, compiles it. The first thread rank that
// asks for a step makes it. Others wait for it and share it for as long as one of them holds it.
// The store is not used if the key does not tell programs apart.
std::shared_ptr<const CompiledArtifact> compile_once(Graph traced, std::span<const Pass> passes,
                                                     const PlanStore& store = {});

}  // namespace flow::graph
