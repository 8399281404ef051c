// Runs a call that is traced, lowered and executed instead of run directly.
#pragma once

#include <vector>

#include "eager/runtime.h"
#include "tests/support/raw_call.h"

namespace flow::contract {

// Traces the call alone, compiles it for this rank and runs the program on copies of the inputs.
std::vector<Tensor> run_traced(const RawCall& call, const KernelTable& kernels = kernel_table());

}  // namespace flow::contract
