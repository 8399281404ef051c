// Converts a call to the form that gradcheck takes: a function of local tensors.
#pragma once

#include <cstdint>

#include "autograd/gradcheck.h"
#include "tests/support/raw_call.h"

namespace flow::contract {

// Copies of the call's inputs; global ones become local. Inputs of `dtype` that are not in
// `constant_inputs` (bit i) require grad.
Inputs differentiable_inputs(const RawCall& call, uint32_t constant_inputs,
                             DType dtype = DType::kFloat64);

// Dispatches the call on such inputs. Inputs that the op writes are copied first. Global inputs are
// made from the local ones. Global outputs become local, and floating ones float64.
GradcheckFunction function_of(const RawCall& call);

}  // namespace flow::contract
