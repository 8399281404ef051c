// Conversion between dtypes.
#pragma once

#include "core/tensor.h"

namespace flow {

// x as `dtype`; x itself if it has that dtype. Floating to integer rounds towards zero. To bool,
// each number that is not zero becomes true. The gradient has x's dtype.  cast(x, flow::float64)
Tensor cast(const TensorArg& x, DType dtype);

}  // namespace flow
