// What a compiled step says of itself, in few words.
#pragma once

#include <string>

#include "nn/compiled_graph.h"

namespace examples {

// Two lines: what is proved about the programs of all ranks, and the memory that each rank is
// predicted to need.
std::string describe_plan(const flow::nn::CompiledGraph& plan);

}  // namespace examples
