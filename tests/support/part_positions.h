// Tests whether an op's signatures say correctly which of them need the positions of their parts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "tests/support/op_samples.h"

namespace flow::contract {

// Cuts the samples of the call into 2 and into 3 uneven parts for each signature that is not
// positional, as micro-batches do, and runs the parts as local tensors, whose position is unknown.
// Returns one line for each signature whose parts do not give the whole result (S is concatenated,
// P added up or compared, B equal); empty if all do.
std::string find_false_parts(const OpSample& sample, DType dtype, uint64_t num_draws = 5);

// Gives the kernels of each signature a rank's part with the position of another rank's part of the
// same shape. Returns one line for each signature that gives other results although it is not
// positional, or gives the same results for all samples of the op although it is.
std::string find_false_positions(const std::vector<const OpSample*>& samples);

}  // namespace flow::contract
