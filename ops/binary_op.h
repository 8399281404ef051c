// Definitions of the ops of ops/binary.h. "_scalar": a host number on the right, "r…_scalar": on
// the left.
#pragma once

#include <tuple>

#include "core/op.h"
#include "ops/promotion.h"

namespace flow::ops {

struct AddAttrs {
  double alpha = 1;

  static constexpr auto fields() { return std::tuple(value_field("alpha", &AddAttrs::alpha)); }
};

extern const OpDef kAdd, kSub, kMul, kDiv;
extern const OpDef kAddScalar, kSubScalar, kRsubScalar, kMulScalar, kDivScalar, kRdivScalar;
extern const OpDef kPow, kPowScalar, kRpowScalar;
extern const OpDef kFloorDivide, kTruncDivide, kFmod, kRemainder;
extern const OpDef kFloorDivideScalar, kTruncDivideScalar, kFmodScalar, kRemainderScalar;
extern const OpDef kMaximum, kMinimum;

}  // namespace flow::ops
