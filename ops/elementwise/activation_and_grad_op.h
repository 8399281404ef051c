// An activation together with its gradient or its derivative, in place: both need the same
// exponentials. Only the compiler of graphs makes calls of these ops
// (graph/passes/fuse_activation_grad.h, graph/passes/save_slopes.h).
#pragma once

#include "core/op.h"

namespace flow::ops {

// (dy, x) -> dx, y: the gradient dx is written over dy, and the activation y of x over x.
extern const OpDef kGeluAndGrad, kGeluTanhAndGrad, kSiluAndGrad;

// (x, y) -> slope, y: the derivative at x is written over x, and the activation of x over y, whose
// values are not read.
extern const OpDef kGeluAndSlope, kGeluTanhAndSlope, kSiluAndSlope;

}  // namespace flow::ops
