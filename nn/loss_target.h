// Placement of the targets of losses.
#pragma once

#include "core/tensor.h"

namespace flow::nn {

// Returns `target` on the placement of `input`, so that the targets of a pipeline may be given on
// the placement of the first stage. Local tensors, and targets that are already there, are returned
// as they are. The layout is kept where both placements have the same number of axes (partial sums
// are reduced); otherwise the target is replicated. Collective where the target moves.
Tensor move_target_to_input(const Tensor& input, const Tensor& target);

}  // namespace flow::nn
