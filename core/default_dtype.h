// The dtype of floating values that nothing else decides.
#pragma once

#include "core/dtype.h"

namespace flow {

// The dtype of tensors made without one, of floating numbers in braces, and of integers where a
// function or a number needs floats: float32 until this rank sets another. Throws InvalidArgument
// for a dtype that is not floating.
void set_default_dtype(DType dtype);
DType default_dtype();

}  // namespace flow
