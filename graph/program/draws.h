// Random ops in micro-batches: each element gets the same value as in the whole batch.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/program/builder.h"
#include "graph/program/part_buffers.h"

namespace flow::graph {

// Adds the kernels of a random node for micro-batch m. `inputs` are its input buffers, in the
// layouts `input_sbp`. A placement with one more axis, for time, tells kernels which elements of
// the whole value they draw. Returns the output buffers.
std::vector<BufferId> add_draws(ProgramBuilder& builder, PartBuffers& buffers, const Node& node,
                                const std::vector<Sbp>& input_sbp,
                                const std::vector<BufferId>& inputs, int64_t m);

}  // namespace flow::graph
