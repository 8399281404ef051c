// Compiled steps as bytes: the content of the file of a saved plan.
#pragma once

#include <string>
#include <string_view>

#include "graph/program/compiled_artifact.h"

namespace flow::graph {

struct SavedPlan {
  PlanKey key;
  CompiledArtifact step;  // its programs have no kernels yet (load_programs)
};

// Numbers do not depend on the machine's byte order. Equal steps give equal bytes.
std::string to_bytes(const CompiledArtifact& step, const PlanKey& key);

// Throws BadFile, which names `name`, if the bytes are no plan, have another version or are
// damaged, and if a program would use memory outside its buffers or the graph's tensors.
SavedPlan parse_plan(std::string_view bytes, std::string_view name, const OpTable& ops);

// Throws BadFile unless every step has existing buffers and the inputs and outputs that its op
// needs, views are within the buffers that they show, buffers are within the arena, and the
// externals are the graph's tensors.
void check_program(const Program& program, const Graph& graph, std::string_view name);

namespace internal {
inline constexpr std::string_view kPlanMagic = "flowplan";
inline constexpr int64_t kPlanVersion = 3;
// Between the magic word and the content is the checksum of the content.
uint64_t plan_checksum(std::string_view content);
}  // namespace internal

}  // namespace flow::graph
