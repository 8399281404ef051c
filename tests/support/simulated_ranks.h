// Ranks simulated in one process: the parts they hold of a logical tensor, and back.
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

// Ranks 0 … num_ranks - 1 on one axis.
Placement ranks(int64_t num_ranks);

// The part of each rank, as its part of a global tensor of `logical`'s shape. Split: the balanced
// slices. Broadcast: copies. P(sum): random addends, much larger than their sum where the dtype
// allows, so that what is not exactly linear shows. P(max), P(min): one rank has the value, others
// random candidates.
std::vector<Tensor> cut(const Tensor& logical, Sbp sbp, const Placement& placement,
                        std::mt19937_64& random);

// Empty when `parts` make up `expected` as `sbp` says; else what differs. Sums of integers wrap,
// those of bools are "any".
std::string compare_parts(std::span<const Tensor> parts, Sbp sbp, const Tensor& expected,
                          Tolerance tolerance);

}  // namespace flow::contract
