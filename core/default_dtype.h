// The floating dtype that applies when nothing else determines one.
#pragma once

#include "core/dtype.h"

namespace flow {

// The dtype of tensors made without an explicit dtype, of floating numbers in braces, and of
// integers where a function or a number needs floats. It is float32 until this rank sets another.
// Throws InvalidArgument for a dtype that is not floating.
void set_default_dtype(DType dtype);
DType default_dtype();

}  // namespace flow
