// Compiled steps as bytes: what a file of a saved plan holds.
#pragma once

#include <string>
#include <string_view>

#include "graph/program/compiled_artifact.h"

namespace flow::graph {

struct SavedPlan {
  PlanKey key;
  CompiledArtifact step;  // its programs have no kernels yet (load_programs)
};

// Numbers are independent of the machine's byte order. Equal steps give equal bytes.
std::string to_bytes(const CompiledArtifact& step, const PlanKey& key);

// Throws BadFile, naming `name`, for bytes that are no plan, another version's or damaged, and for
// programs that would reach beyond their memory or the graph's tensors.
SavedPlan parse_plan(std::string_view bytes, std::string_view name, const OpTable& ops);

// Throws BadFile unless every step has buffers that exist and what its op takes and gives, views
// lie in what they show, buffers in the arena, and externals are the graph's tensors.
void check_program(const Program& program, const Graph& graph, std::string_view name);

namespace internal {
inline constexpr std::string_view kPlanMagic = "flowplan";
inline constexpr int64_t kPlanVersion = 3;
// What stands between the magic word and the content: its checksum.
uint64_t plan_checksum(std::string_view content);
}  // namespace internal

}  // namespace flow::graph
