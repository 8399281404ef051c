// Definitions of the ops of ops/elementwise/unary.h, and of the fused gradients some of them use:
// "…_grad"(dy, x or y) = dy f'(x).
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

extern const OpDef kNeg, kAbs, kSign, kSquare, kFloor, kCeil, kRound, kTrunc, kFrac;
extern const OpDef kExp, kExp2, kExpm1, kLog, kLog2, kLog10, kLog1p, kSqrt, kRsqrt, kReciprocal,
    kSin, kCos, kTanh, kErf, kErfc, kSinc, kSigmoid;
extern const OpDef kRelu, kGelu, kGeluTanh, kSilu, kLeakyRelu, kElu, kSoftplus;
extern const OpDef kIsnan, kIsinf, kIsfinite, kLogicalNot;

// (dy, y)
extern const OpDef kReluGrad, kTanhGrad, kSigmoidGrad;
// (dy, x)
extern const OpDef kGeluGrad, kGeluTanhGrad, kSiluGrad, kLeakyReluGrad, kEluGrad, kSoftplusGrad;

}  // namespace flow::ops
