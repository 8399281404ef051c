// Ranks simulated in one process: divides logical tensors into the ranks' parts and compares parts.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/placement.h"
#include "core/sbp.h"
#include "core/tensor.h"
#include "tests/support/closeness.h"
#include "tests/support/values.h"

namespace flow::contract {

// A placement with ranks 0 … num_ranks - 1 on one axis.
Placement ranks(int64_t num_ranks);

// Returns the part of each rank, as its part of a global tensor of `logical`'s shape. Split: the
// balanced slices. Broadcast: copies. P(sum): random addends that are much larger than their sum if
// the dtype allows it, so that a computation that is not exactly linear is detected. P(max),
// P(min): one rank has the value, the others have random candidates. With several axes, the parts
// of an axis are cut along the next one; replicas stay equal.
std::vector<Tensor> cut(const Tensor& logical, const NdSbp& nd_sbp, const Placement& placement,
                        std::mt19937_64& random);

// Empty if `parts` represent `expected` in the layout `sbp`; else the differences. Sums of integers
// wrap around; sums of bools mean "any".
std::string compare_parts(std::span<const Tensor> parts, Sbp sbp, const Tensor& expected,
                          Tolerance tolerance);
// The same for the ranks of a placement of several axes, in the order of its ranks().
std::string compare_parts(std::span<const Tensor> parts, const NdSbp& nd_sbp,
                          const Placement& placement, const Tensor& expected, Tolerance tolerance);

}  // namespace flow::contract
