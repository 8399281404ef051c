// A dispatched call that runs as a compiled step in micro-batches.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/support/raw_call.h"

namespace flow::contract {

// Runs the call as a step of `num_micro_batches`. Bit i of `batches`: input i is an input of the
// step, of which each micro-batch has some rows; the step captures the others. Returns the outputs.
// Throws what compiling the step throws.
std::vector<Tensor> run_in_micro_batches(const RawCall& call, uint32_t batches,
                                         int64_t num_micro_batches);

}  // namespace flow::contract
