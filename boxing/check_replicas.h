// Compares values that several ranks must hold alike; for FLOW_CHECK=1.
#pragma once

#include "core/site.h"
#include "core/tensor.h"

namespace flow::boxing {

// Throws InvalidArgument if ranks that hold the same part of a global tensor hold different values,
// for example because their seeds differ. The error names `op`, two ranks and the tensor.
// Collective over the ranks that hold this part; does nothing for parts that one rank holds alone.
void check_replicas(const Tensor& tensor, const char* op, Site site);

}  // namespace flow::boxing
