// Definitions of the extrema; they take the attrs of the other reductions.
#pragma once

#include "ops/reduce/reduce_op.h"

namespace flow::ops {

// kMaxDim, kMinDim give values and indices; they, kArgmax and kArgmin reduce one dim, or all.
extern const OpDef kAmax, kAmin, kMaxDim, kMinDim, kArgmax, kArgmin;

}  // namespace flow::ops
