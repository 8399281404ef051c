// Op definitions of softmax, for its kernels and other families' gradients.
#pragma once

#include <tuple>

#include "core/op.h"

namespace flow::ops {

// `dim` is not negative.
struct SoftmaxAttrs {
  int64_t dim = 0;

  static constexpr auto fields() { return std::tuple(key_field("dim", &SoftmaxAttrs::dim)); }
};

extern const OpDef kSoftmax;
extern const OpDef kLogSoftmax;
extern const OpDef kSoftmaxBackward;     // (dy, y) -> dx
extern const OpDef kLogSoftmaxBackward;  // (dy, y) -> dx

// dx = (dy - sum(dy y, dim)) y with y = softmax(x, dim).
Tensor softmax_backward(const TensorArg& dy, const TensorArg& y, int64_t dim);
// dx = dy - exp(y) sum(dy, dim) with y = log_softmax(x, dim).
Tensor log_softmax_backward(const TensorArg& dy, const TensorArg& y, int64_t dim);

}  // namespace flow::ops
