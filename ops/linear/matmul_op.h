// Op definitions of matrix products, for kernels and other families' gradients.
#pragma once

#include "core/op.h"

namespace flow::ops {

extern const OpDef kMatmul;
extern const OpDef kLinear;
extern const OpDef kContractLeading;

// y[i, j] = sum over all leading dims of a[..., i] b[..., j]; a: (..., m), b: (..., n) -> (m, n).
// This is the gradient of a weight that all leading dims share.
Tensor contract_leading(const TensorArg& a, const TensorArg& b);

}  // namespace flow::ops
