// Copying and filling.
#pragma once

#include "core/tensor.h"

namespace flow {

// A contiguous copy of x in memory of its own; differentiable.
Tensor clone(const TensorArg& x);
// x in the memory of a device, where it lies elsewhere a copy; differentiable. Tensor::to takes
// names.
Tensor to_device(const TensorArg& x, DeviceType device);
// x when its elements lie in row-major order without gaps, else a copy that does.
Tensor contiguous(const TensorArg& x);

}  // namespace flow
