// A call in the form gradcheck takes: a function of local tensors.
#pragma once

#include <cstdint>

#include "autograd/gradcheck.h"
#include "tests/support/raw_call.h"

namespace flow::contract {

// Copies of the call's inputs, global ones as local; inputs of `dtype` that are not in
// `constant_inputs` (bit i) require grad.
Inputs differentiable_inputs(const RawCall& call, uint32_t constant_inputs,
                             DType dtype = DType::kFloat64);

// Dispatches the call on such inputs. Inputs the op writes are copied before; global inputs are
// made from the local ones; global outputs are made local, floating ones float64.
GradcheckFunction function_of(const RawCall& call);

}  // namespace flow::contract
