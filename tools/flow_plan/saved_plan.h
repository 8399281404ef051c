// Reads the plans that flow-plan is about.
#pragma once

#include <cstdint>
#include <string>

#include "graph/plan_file/plan_reader.h"

namespace flow::tools {

// Throws IoError or BadFile.
graph::SavedPlan read_plan(const std::string& path);

// Returns the number if it is a rank of the plan, otherwise throws InvalidArgument.
int64_t checked_rank(const graph::CompiledArtifact& step, int64_t rank);

// Proves the certificate again from the programs in the file. Throws InternalError if it does not
// hold.
void check_certificate(const graph::CompiledArtifact& step);

}  // namespace flow::tools
