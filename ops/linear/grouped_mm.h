// Products of groups of rows with a matrix for each group, as for the experts of a mixture.
#pragma once

#include "core/tensor.h"

namespace flow {

struct GroupedMmOptions {
  Tensor offs = {};  // where each of the G groups ends, integers (G); needed unless both are stacks
};

// The product of each group. A dim of a matrix is cut into groups where `offs` says; a stack has
// one matrix for each group:
//   (m, k), (G, k, n) -> (m, n)      rows of the first in groups; those behind the last one give 0
//   (G, m, k), (k, n) -> (m, n)      columns of the second in groups
//   (m, k), (k, n) -> (G, m, n)      the inner dim in groups: gradients of weights
//   (G, m, k), (G, k, n) -> (G, m, n)   bmm, without offs
// The values of offs are read, so the first three forms cannot be traced. Throws InvalidArgument if
// offs does not rise or exceeds the dim.
Tensor grouped_mm(const TensorArg& a, const TensorArg& b, const GroupedMmOptions& options = {});

}  // namespace flow
