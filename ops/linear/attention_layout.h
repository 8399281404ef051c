// The strides that attention kernels give their outputs.
#pragma once

#include <vector>

#include "core/kernel.h"

namespace flow::ops {

// The outputs of attention, (y, logsumexp), or of its gradient, (dq, dk, dv), for a
// KernelChoice. Heads are often views of (B, T, heads x width), whose dims 1 and 2 are exchanged.
// y is stored in the order of dims of q, and the gradients in the orders of q, k and v, so that
// exchanging the dims back needs no copy. They are dense, and logsumexp is contiguous.
std::vector<MetaPtr> attention_outputs(const KernelQuery& query);

}  // namespace flow::ops
