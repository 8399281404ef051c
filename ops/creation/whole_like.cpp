#include "ops/creation/whole_like.h"

#include "ops/creation/creation.h"

namespace flow::ops {

TensorOptions whole_like(const Tensor& x) {
  TensorOptions options = options_like(x);
  if (x.is_global()) options.sbp = NdSbp::broadcast(x.placement().num_axes());
  return options;
}

TensorOptions whole_like(const Tensor& x, DType dtype) {
  TensorOptions options = whole_like(x);
  options.dtype = dtype;
  return options;
}

}  // namespace flow::ops
