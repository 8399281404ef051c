// Op definitions of softmax, for its kernels and other families' gradients.
#pragma once

#include <tuple>

#include "core/op.h"
#include "core/tensor.h"

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

// Softmax over a dim that ranks have cut: the pieces, for which only maxima and sums of rows
// travel. Of a 16-bit x in float32.
struct SplitSoftmax {
  Tensor shifted;  // x - max(x) over the dim; laid out as x
  Tensor max;      // of each row, the dim kept
  Tensor sum;      // of exp(shifted), the dim kept
};

SplitSoftmax split_softmax(const TensorArg& x, int64_t dim);

// Whether x is cut along `dim` and so large that the rows' maxima and sums are quicker to move than
// x itself. The same on every rank.
bool pays_to_split_softmax(const TensorMeta& x, int64_t dim);

}  // namespace flow::ops
