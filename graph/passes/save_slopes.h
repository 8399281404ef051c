// The pass that keeps the derivative of an activation for backward in place of its input.
#pragma once

#include <cstdint>

#include "graph/ir/ir.h"

namespace flow::graph {

// Of gelu and silu, backward needs the derivative at x, which has the same exponentials as the
// activation. If nothing but an activation and its gradient reads x, one node computes both the
// activation and the derivative, which it writes over x; the gradient becomes a product. Float32
// and float64 on the CPU. Returns how many activations it changed. Exact.
int64_t save_slopes(Graph& graph);

}  // namespace flow::graph
