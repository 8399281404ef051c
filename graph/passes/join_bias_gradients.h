// The pass that sums the gradient of a layer's result while the gradient of the weight reads it.
#pragma once

#include <cstdint>

#include "graph/ir/ir.h"

namespace flow::graph {

// On CUDA devices, joins the product that makes a weight's gradient with the sum of one of its
// operands over the same dims, the gradient of the bias, to one contract_leading_and_sum: cuBLASLt
// sums the operand while it multiplies, so no kernel reads it again. float32 and 16-bit types.
// Returns how many sums it joined. Not exact: the library sums in an order of its own.
int64_t join_bias_gradients(Graph& graph);

}  // namespace flow::graph
