// Definitions of the ops of ops/elementwise/unary.h that have attrs, and of the fused gradients:
// "…_grad"(dy, x or y) = dy f'(x). Ops without attrs are rows of ops/elementwise/unary_rows.h.
#pragma once

#include <tuple>

#include "core/op.h"

namespace flow::ops {

struct LeakyReluAttrs {
  double negative_slope = 0.01;

  static constexpr auto fields() {
    return std::tuple(value_field("negative_slope", &LeakyReluAttrs::negative_slope));
  }
};

struct EluAttrs {
  double alpha = 1;

  static constexpr auto fields() { return std::tuple(value_field("alpha", &EluAttrs::alpha)); }
};

struct SoftplusAttrs {
  double beta = 1;
  double threshold = 20;

  static constexpr auto fields() {
    return std::tuple(value_field("beta", &SoftplusAttrs::beta),
                      value_field("threshold", &SoftplusAttrs::threshold));
  }
};

// The two forms of flow::gelu.
Tensor gelu_none(const TensorArg& x);
Tensor gelu_tanh(const TensorArg& x);
// The op of the second one, for files that do not see the table of rows.
const OpDef& gelu_tanh_op();

extern const OpDef kLeakyRelu, kElu, kSoftplus;

// (dy, y)
extern const OpDef kReluGrad, kTanhGrad, kSigmoidGrad;
// (dy, x)
extern const OpDef kGeluGrad, kGeluTanhGrad, kSiluGrad, kLeakyReluGrad, kEluGrad, kSoftplusGrad;

}  // namespace flow::ops
