// An activation together with its gradient, in place. Only the compiler of graphs makes calls of
// these ops, where it computes an activation again in backward
// (graph/passes/recompute_activations.h): both need the same exponentials.
#pragma once

#include "core/op.h"

namespace flow::ops {

// (dy, x) -> dx, y: the gradient dx is written over dy, and the activation y of x over x.
extern const OpDef kGeluAndGrad, kGeluTanhAndGrad, kSiluAndGrad;

}  // namespace flow::ops
