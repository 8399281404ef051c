// Reads compiled steps from the content of the file of a saved plan.
#pragma once

#include <string_view>

#include "graph/program/compiled_artifact.h"

namespace flow::graph {

struct SavedPlan {
  PlanKey key;
  CompiledArtifact step;  // its programs have no kernels yet (load_programs)
};

// Throws BadFile, which names `name`, if the bytes are no plan, have another version or are
// damaged, and if a program would use memory outside its buffers or the graph's tensors.
SavedPlan parse_plan(std::string_view bytes, std::string_view name, const OpTable& ops);

}  // namespace flow::graph
