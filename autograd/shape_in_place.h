// Changes the shape of a tensor without changing its memory: all copies of the handle see the new
// shape; other views of the memory keep theirs. The value and the gradient are those of the
// function without underscore (ops/shape/view.h). While gradients are recorded, a leaf that
// requires grad cannot change its shape.
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
