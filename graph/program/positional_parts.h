// Kernels that need to know which elements of the logical tensors they have, in micro-batches:
// random ops, whose values belong to logical elements, and ops such as a select of one row.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/program/builder.h"
#include "graph/program/part_buffers.h"

namespace flow::graph {

// Adds the kernels of a node with a positional signature for the micro-batches of m's size.
// `inputs` are its input buffers, in the layouts `input_sbp`, of which none is partial. A placement
// with one more axis, for time, tells kernels the positions of their parts; a micro-batch whose
// samples are no part of a balanced split takes several kernels. Returns the output buffers. Throws
// Unsupported, naming op and user line, if the tensors have different samples on this rank.
std::vector<BufferId> add_positional(ProgramBuilder& builder, PartBuffers& buffers,
                                     const Node& node, const std::vector<Sbp>& input_sbp,
                                     const std::vector<BufferId>& inputs, int64_t m);

}  // namespace flow::graph
