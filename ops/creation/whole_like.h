// Options of constants that a composed function needs next to a tensor.
#pragma once

#include "core/dtype.h"
#include "core/tensor.h"

namespace flow::ops {

// options_like(x), but whole on every rank of x, and with another dtype if one is given.
TensorOptions whole_like(const Tensor& x);
TensorOptions whole_like(const Tensor& x, DType dtype);

}  // namespace flow::ops
