// Writes compiled steps as bytes: the content of the file of a saved plan.
#pragma once

#include <string>

#include "graph/program/compiled_artifact.h"

namespace flow::graph {

// Numbers do not depend on the machine's byte order. Equal steps give equal bytes.
std::string to_bytes(const CompiledArtifact& step, const PlanKey& key);

}  // namespace flow::graph
