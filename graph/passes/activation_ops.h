// What the passes fuse_activation_grad and save_slopes know of activations.
#pragma once

#include "core/op.h"
#include "graph/ir/ir.h"

namespace flow::graph {

// An activation, its gradient, and the ops that compute it together with its gradient or with its
// derivative (ops/elementwise/activation_and_grad_op.h).
struct ActivationOps {
  const OpDef* value;
  const OpDef* gradient;
  const OpDef* with_gradient;
  const OpDef* with_slope;
};

// Null for other ops than gelu and silu.
const ActivationOps* activation_ops(const OpDef* value);

// Convolutions give values blocked layouts, which the kernels of the joined ops do not have.
bool has_convolutions(const Graph& graph);

}  // namespace flow::graph
