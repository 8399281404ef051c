// A compiled step as text for people.
#pragma once

#include <cstdint>
#include <string>

#include "graph/program/compiled_artifact.h"

namespace flow::graph {

// Returns inputs, captured tensors, nodes, stages, passes, memory, certificate, and the
// redistributions of `rank` with their lines.
std::string summary_of(const CompiledArtifact& step, int64_t rank);

}  // namespace flow::graph
