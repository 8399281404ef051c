#include "nn/layers/softmax.h"

#include "core/error.h"
#include "nn/layers/option_text.h"
#include "ops/elementwise/shrink.h"
#include "ops/norm/softmax.h"

namespace flow::nn {

using internal::text_of;

Softmax::Softmax(int64_t dim) : dim_(dim) {
  set_extra_repr(str("dim=", dim));
}

Tensor Softmax::forward(const Tensor& x) {
  return softmax(x, dim_);
}

Softmin::Softmin(int64_t dim) : dim_(dim) {
  set_extra_repr(str("dim=", dim));
}

Tensor Softmin::forward(const Tensor& x) {
  return softmin(x, dim_);
}

LogSoftmax::LogSoftmax(int64_t dim) : dim_(dim) {
  set_extra_repr(str("dim=", dim));
}

Tensor LogSoftmax::forward(const Tensor& x) {
  return log_softmax(x, dim_);
}

Tensor Softmax2d::forward(const Tensor& x) {
  if (x.dim() != 3 && x.dim() != 4) {
    throw InvalidArgument(str("[Softmax2d] x must be (N, C, H, W) or (C, H, W); received ",
                              x.meta(), "; use Softmax(dim) for other shapes"));
  }
  return softmax(x, -3);
}

}  // namespace flow::nn
