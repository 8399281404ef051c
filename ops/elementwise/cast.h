// Conversion between dtypes.
#pragma once

#include "core/tensor.h"

namespace flow {

// x as `dtype`; x itself when it has that dtype. Floating to integer rounds towards zero; to bool
// is "is not zero". The gradient comes back in x's dtype.  cast(x, flow::float64)
Tensor cast(const TensorArg& x, DType dtype);

}  // namespace flow
