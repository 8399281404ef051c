// Other shapes for the same handle and memory: every copy of the handle sees them, other views of
// the memory keep theirs. The value and its gradient are those of the function without underscore
// (ops/shape/view.h). Where gradients are recorded, a leaf that requires grad keeps its shape.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace flow {

const Tensor& squeeze_(const TensorArg& x);
const Tensor& squeeze_(const TensorArg& x, int64_t dim);
const Tensor& unsqueeze_(const TensorArg& x, int64_t dim);
const Tensor& transpose_(const TensorArg& x, int64_t dim0, int64_t dim1);
const Tensor& t_(const TensorArg& x);

}  // namespace flow
