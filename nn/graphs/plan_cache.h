// The plan cache: a folder of saved plans that runs of the same program share.
#pragma once

#include <string>

#include "graph/compile.h"

namespace flow::nn {

// The store in this folder. The plan of a step is the file "<hash of everything it depends
// on>.plan". Files are never removed. Several processes may read and write one folder at the same
// time. An empty name means that plans are not kept.
graph::PlanStore plan_cache(const std::string& folder);

}  // namespace flow::nn
