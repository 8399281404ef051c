// A folder of saved plans, which runs of the same program share.
#pragma once

#include <string>

#include "graph/program/compiled_artifact.h"

namespace flow::nn {

// The plan of a step is the file "<hash of all it depends on>.plan"; none are removed. Processes
// may read and write one folder at once. An empty name: plans are not kept.
graph::PlanStore plan_cache(const std::string& folder);

}  // namespace flow::nn
