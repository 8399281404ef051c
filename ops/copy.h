// Copying and filling.
#pragma once

#include "core/tensor.h"

namespace flow {

// A contiguous copy of x in memory of its own; differentiable.
Tensor clone(const TensorArg& x);
// x when its elements lie in row-major order without gaps, else a copy that does.
Tensor contiguous(const TensorArg& x);

}  // namespace flow
