// Copying and filling.
#pragma once

#include "core/tensor.h"

namespace flow {

// Returns a contiguous copy of x that owns its memory. Differentiable.
Tensor clone(const TensorArg& x);
// Returns x in the memory of a device: x itself if it is stored there, else a copy. Differentiable.
// Tensor::to accepts the names of devices.
Tensor to_device(const TensorArg& x, DeviceType device);
// Returns x if its elements are stored in row-major order without gaps, else a contiguous copy. For
// a global tensor also a copy of a view in a trace, and where some ranks have one row and others
// more.
Tensor contiguous(const TensorArg& x);

}  // namespace flow
