// Definitions of the extrema; they take the attrs of the other reductions.
#pragma once

#include "ops/reduce/reduce_op.h"

namespace flow::ops {

// kMaxDim and kMinDim return values and indices. They, kArgmax and kArgmin reduce either one dim or
// all dims.
extern const OpDef kAmax, kAmin, kMaxDim, kMinDim, kArgmax, kArgmin;

}  // namespace flow::ops
