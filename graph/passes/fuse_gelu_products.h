// The pass that lets matrix products compute gelu and its gradient.
#pragma once

#include <cstdint>

#include "graph/ir/ir.h"

namespace flow::graph {

// On CUDA devices, joins gelu (by the tanh approximation) with the linear layer that makes its
// input, and its gradient with the product that makes the gradient of its result, because cuBLASLt
// can do so before it stores a product. float32 and 16-bit types. Returns how many pairs it joined.
// Not exact: the library applies gelu before it rounds, and has a tanh of its own.
int64_t fuse_gelu_products(Graph& graph);

}  // namespace flow::graph
