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

// The parts of a softmax over a dim that is split among ranks: only the maxima and sums of rows are
// communicated. A 16-bit x is computed in float32.
struct SplitSoftmax {
  Tensor shifted;  // x - max(x) over the dim, in the layout of x
  Tensor max;      // max of each row; the dim is kept with size 1
  Tensor sum;      // sum of exp(shifted) per row; the dim is kept with size 1
};

SplitSoftmax split_softmax(const TensorArg& x, int64_t dim);

// Returns true if x is split along `dim` and so large that communicating the maxima and sums of
// rows is faster than communicating x. The answer is the same on every rank.
bool pays_to_split_softmax(const TensorMeta& x, int64_t dim);

}  // namespace flow::ops
