// Whether an op's SBP rule is true, and whether it is complete: by computing on simulated ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/op.h"
#include "tests/support/op_samples.h"
#include "tests/support/raw_call.h"

namespace flow::contract {

// "S(0), B -> P".
std::string to_string(const SbpSignature& signature);

// The op's 1-D signatures for this call, "all B" included.
std::vector<SbpSignature> signatures_of(const RawCall& call, int64_t num_ranks);

// One line for each signature that does not hold, for kernels of any name; empty when all do.
std::string find_false_signatures(const OpSample& sample, DType dtype, int64_t num_ranks);

// The signatures that hold for several random draws and are not in the table. Not asked for:
// - what another signature implies, as a broadcast value is also a P(max) and a P(min) one;
// - P(sum) of bools, which is their P(max);
// - splits of a dim of size 1, which leave everything to the first rank;
// - partial layouts of tensors the op writes in place: parameters and states may not be partial.
std::vector<std::string> find_missing_signatures(const OpSample& sample, DType dtype,
                                                 int64_t num_ranks);

}  // namespace flow::contract
