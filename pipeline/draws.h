// Random ops in micro-batches: each element draws what it draws in the whole batch.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/program/builder.h"
#include "pipeline/part_buffers.h"

namespace flow::pipeline {

// Emits a random node for micro-batch m, whose inputs, taken as `input_sbp`, are `inputs`. Kernels
// are told which elements of the whole value the part is: the shard of a placement with one more
// axis, in time. Returns the output buffers.
std::vector<graph::BufferId> add_draws(graph::ProgramBuilder& builder, PartBuffers& buffers,
                                       const graph::Node& node, const std::vector<Sbp>& input_sbp,
                                       const std::vector<graph::BufferId>& inputs, int64_t m);

}  // namespace flow::pipeline
